/* SPDX-License-Identifier: Apache-2.0
 * steps: runs one op of a program as far as possible without blocking. */
#ifndef RING_CORE_STEPS_H
#define RING_CORE_STEPS_H

#include "comm.h"

/** Runs @p o from the work's current position. @param[out] moved  set if it made progress.
 *  @return RING_OK when the op is complete; RING_IN_PROGRESS: the work waits or is held. */
ring_status step_run(work *w, const program_op *o, bool *moved);

#endif
