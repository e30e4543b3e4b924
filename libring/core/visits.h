/* SPDX-License-Identifier: Apache-2.0
 * visits: turns for the orphans of communicators. */
#ifndef RING_CORE_VISITS_H
#define RING_CORE_VISITS_H

#include "comm.h"

/** The result of moving some of its orphans; VISIT_LEFT: the lock was not free. */
typedef enum visit { VISIT_LEFT, VISIT_IN_VAIN, VISIT_MOVED } visit;
visit visit_orphans(ring_comm *comm);
/** Moves orphans of other communicators, if there are any. The caller holds no lock. */
void visit_others(const ring_comm *except);

#endif
