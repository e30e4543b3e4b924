/* SPDX-License-Identifier: Apache-2.0
 *
 * segments: divides a network into runs of consecutive nodes whose activations are not kept for
 * backward but recomputed from the output of the segment before. All segments and slots reuse the
 * same memory for that; only the segments' outputs are kept.
 */
#ifndef TRAIN_SEGMENTS_H
#define TRAIN_SEGMENTS_H

#include "model.h"

/** Numbers the segments. Each has @p interval nodes, or more if a node after them would need an
 *  earlier output as well. 0: one segment, and everything is kept. A received node is a segment of
 *  its own. */
void segments_plan(train_model *model, int interval);

#endif
