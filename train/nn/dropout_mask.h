/* SPDX-License-Identifier: Apache-2.0
 *
 * dropout_mask: decides which elements dropout keeps, as a pure function of seed, update, sample,
 * node and place in the sample. So the mask does not depend on how samples are divided among ranks
 * and micro-batches, and it is the same when activations are recomputed.
 */
#ifndef TRAIN_DROPOUT_MASK_H
#define TRAIN_DROPOUT_MASK_H

#include "op.h"

/** Draws the mask of places @p begin to @p end - 1 of sample @p i of the batch.
 *  @param[out] keep  [end - begin] 0 with probability settings.probability of the use, else 1. */
void dropout_mask_draw(const op_run *run, size_t i, size_t begin, size_t end, uint8_t *keep);

/** @return the factor of the elements that are kept: 1 / (1 - probability). */
float dropout_mask_scale(const op_use *use);

#endif
