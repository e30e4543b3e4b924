/* SPDX-License-Identifier: Apache-2.0
 *
 * kept: which elements dropout keeps, a function of seed, update, sample, node and place alone. So
 * it does not depend on how samples lie on ranks and micro-batches, and computing a batch again
 * gives the same.
 */
#ifndef TRAIN_KEPT_H
#define TRAIN_KEPT_H

#include "op.h"

/** Fills @p keep of places @p begin to below @p end of sample @p i of the batch: 1, or 0 with the
 *  probability of the node's settings. */
void kept_draw(const op_run *run, size_t i, size_t begin, size_t end, uint8_t *keep);

/** @return what the elements that are kept are multiplied with. */
float kept_scale(const op_use *use);

#endif
