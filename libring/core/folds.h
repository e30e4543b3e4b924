/* SPDX-License-Identifier: Apache-2.0
 * folds: runs the op of a program that combines chunks, as far as possible without blocking. */
#ifndef RING_CORE_FOLDS_H
#define RING_CORE_FOLDS_H

#include "comm.h"

/** Runs the fold @p o. @param[out] moved  set if it made progress.
 *  @return RING_OK when it is complete; RING_IN_PROGRESS: the work waits or is held. */
ring_status fold_run(work *w, const program_op *o, bool *moved);

#endif
