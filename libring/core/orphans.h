/* SPDX-License-Identifier: Apache-2.0
 *
 * orphans: runs engine turns for works in flight that no thread waits for. Its callers are the
 * progress thread and threads that wait for other works.
 */
#ifndef RING_CORE_ORPHANS_H
#define RING_CORE_ORPHANS_H

#include "comm.h"

/** The result of orphans_advance(). ORPHANS_BUSY: no turn, because the lock was not free.
 *  ORPHANS_IDLE: a turn in which nothing moved. */
typedef enum orphans_turn { ORPHANS_BUSY, ORPHANS_IDLE, ORPHANS_MOVED } orphans_turn;
/** Runs an engine turn for a communicator's orphans if its lock is free. */
orphans_turn orphans_advance(ring_comm *comm);
/** Advances the orphans of all communicators but @p except. The caller holds no lock. */
void orphans_advance_others(const ring_comm *except);

#endif
