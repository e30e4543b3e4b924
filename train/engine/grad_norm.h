/* SPDX-License-Identifier: Apache-2.0
 *
 * grad_norm: computes the norm of all gradients over all ranks and counts each parameter once. In
 * every stage of ZeRO, the squares are summed first per owner and then over the owners, so that all
 * stages of ZeRO get the same norm, bit for bit.
 */
#ifndef TRAIN_GRAD_NORM_H
#define TRAIN_GRAD_NORM_H

#include "train_engine.h"

/** Collective. Sets engine->scalars->grad_norm to the same value on all ranks. All gradients must
 *  have been reduced. @return RING_OK, or the error that ended the communicator. */
ring_status grad_norm(const train_engine *engine);

#endif
