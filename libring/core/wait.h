/* SPDX-License-Identifier: Apache-2.0
 * wait: blocks a thread until a work ends. The waiting thread advances all works of the
 * communicator. */
#ifndef RING_CORE_WAIT_H
#define RING_CORE_WAIT_H

#include "comm.h"

/** Waits until the work has ended. The caller holds the lock, which is released meanwhile.
 *  @param deadline  when to stop waiting, in seconds of clock_now(); 0: no deadline. Without one,
 *  the wait stops only if the work's gate is still closed after its timeout.
 *  @return RING_OK if the work has ended, else RING_IN_PROGRESS. */
ring_status wait_for_work(work *w, double deadline);
/** As wait_for_work(), for all works that were started before this call, and their on_done
 *  functions. Works of later calls are not waited for. */
ring_status wait_for_all(ring_comm *comm, double deadline);
/** Pauses briefly after a pass over several works that have not ended.
 *  @param[in,out] looks  the number of such passes. @return true if there were so many of them that
 *  the caller should sleep instead. */
bool wait_between_looks(unsigned *looks);

#endif
