/* SPDX-License-Identifier: Apache-2.0
 *
 * segments: divides a network into segments of consecutive nodes for activation checkpointing. Only
 * the output of each segment is kept for backward; all other activations are recomputed from the
 * output of the segment before, in memory that all segments and slots share.
 */
#ifndef TRAIN_SEGMENTS_H
#define TRAIN_SEGMENTS_H

#include "model.h"

/** Assigns the nodes to segments. A segment has @p interval nodes, or more if the network may not
 * be cut after them (model_may_cut()). A "received" node is a segment of its own.
 *  @param interval  0: there is one segment, and all activations are kept */
void segments_plan(train_model *model, int interval);

#endif
