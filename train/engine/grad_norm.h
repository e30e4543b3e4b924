/* SPDX-License-Identifier: Apache-2.0
 *
 * grad_norm: computes the norm of all gradients over all ranks and counts each parameter once. The
 * sums are made owner by owner in every stage of ZeRO, so that all stages clip alike, bit for bit.
 */
#ifndef TRAIN_GRAD_NORM_H
#define TRAIN_GRAD_NORM_H

#include "train_engine.h"

/** Collective, when all gradients are reduced. Fills engine->scalars->grad_norm, the same on all
 *  ranks. */
ring_status grad_norm(const train_engine *engine);

#endif
