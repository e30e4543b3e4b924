/* SPDX-License-Identifier: Apache-2.0
 *
 * dropout_mask: decides which elements dropout keeps, as a function of seed, update, sample, node
 * and place alone. The result does not depend on how samples are split over ranks and
 * micro-batches, and is the same when a batch is computed again.
 */
#ifndef TRAIN_DROPOUT_MASK_H
#define TRAIN_DROPOUT_MASK_H

#include "op.h"

/** Draws the mask of places @p begin to below @p end of sample @p i of the batch.
 *  @param[out] keep  [end - begin] 0 with the probability of the node's settings, else 1. */
void dropout_mask_draw(const op_run *run, size_t i, size_t begin, size_t end, uint8_t *keep);

/** @return the factor by which elements that are kept are multiplied: 1 / (1 - probability). */
float dropout_mask_scale(const op_use *use);

#endif
