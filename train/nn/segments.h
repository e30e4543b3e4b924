/* SPDX-License-Identifier: Apache-2.0
 *
 * segments: neighbouring nodes whose activations are not kept for backward but recomputed, from
 * the output of the segment before. The memory that a segment needs for that is reused by all
 * segments and slots; only the segments' outputs are kept.
 */
#ifndef TRAIN_SEGMENTS_H
#define TRAIN_SEGMENTS_H

#include "model.h"

/** Numbers the segments: each has @p interval nodes, or more where an output goes past the end.
 *  0: one segment, and everything is kept. A received node is one of its own. */
void segments_plan(train_model *model, int interval);

#endif
