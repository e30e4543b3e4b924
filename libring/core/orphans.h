/* SPDX-License-Identifier: Apache-2.0
 *
 * orphans: engine turns for works that are under way without a waiting thread. Threads that wait
 * for other works make them, and the progress thread does.
 */
#ifndef RING_CORE_ORPHANS_H
#define RING_CORE_ORPHANS_H

#include "comm.h"

/** The result of moving some of its orphans; VISIT_LEFT: the lock was not free. */
typedef enum orphans_turn { ORPHANS_BUSY, ORPHANS_IDLE, ORPHANS_MOVED } orphans_turn;
orphans_turn orphans_advance(ring_comm *comm);
/** Moves orphans of other communicators, if there are any. The caller holds no lock. */
void orphans_advance_others(const ring_comm *except);

#endif
