/* SPDX-License-Identifier: Apache-2.0
 *
 * grad_norm: the norm of all gradients, over all ranks, each parameter counted once. Owner by owner
 * in any stage of ZeRO, so that all stages clip alike, bit for bit.
 */
#ifndef TRAIN_GRAD_NORM_H
#define TRAIN_GRAD_NORM_H

#include "train_engine.h"

/** Collective, when all gradients are reduced. Fills engine->scalars->grad_norm, the same on all
 *  ranks. */
ring_status grad_norm(const train_engine *engine);

#endif
