/* SPDX-License-Identifier: Apache-2.0
 * steps: runs one op of a program as far as possible without blocking. */
#ifndef RING_CORE_STEPS_H
#define RING_CORE_STEPS_H

#include "comm.h"

/** Runs @p o from the work's current position. @param[out] moved  set to true if the op made
 *  progress. @return RING_OK if the op is complete; RING_IN_PROGRESS if the work waits on a channel
 *  or is held. */
ring_status step_run(work *w, const program_op *o, bool *moved);

#endif
