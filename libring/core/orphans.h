/* SPDX-License-Identifier: Apache-2.0
 *
 * orphans: runs engine turns for works in flight that no thread waits for. Threads that wait for
 * other works and the progress thread call it.
 */
#ifndef RING_CORE_ORPHANS_H
#define RING_CORE_ORPHANS_H

#include "comm.h"

/** The result of orphans_advance(). ORPHANS_BUSY: the lock was not free. */
typedef enum orphans_turn { ORPHANS_BUSY, ORPHANS_IDLE, ORPHANS_MOVED } orphans_turn;
/** Runs an engine turn for a communicator's orphans if its lock is free. */
orphans_turn orphans_advance(ring_comm *comm);
/** Advances the orphans of all communicators but @p except. The caller holds no lock. */
void orphans_advance_others(const ring_comm *except);

#endif
