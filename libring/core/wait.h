/* SPDX-License-Identifier: Apache-2.0
 * wait: blocks a thread until a work ends, and advances works meanwhile. */
#ifndef RING_CORE_WAIT_H
#define RING_CORE_WAIT_H

#include "comm.h"

/** Waits until the work has ended. The caller holds the lock, which is released meanwhile.
 *  @param deadline  when to give up, in seconds of clock_now(); 0: only if the work's gate is still
 *  closed after its time-out. @return RING_OK, or RING_IN_PROGRESS after the deadline. */
ring_status wait_for_work(work *w, double deadline);
/** Pauses after a pass over several works that have not ended. @param[in,out] looks  the number of
 *  such passes. @return true if the caller should sleep now. */
bool wait_between_looks(unsigned *looks);

#endif
