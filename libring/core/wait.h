/* SPDX-License-Identifier: Apache-2.0
 * wait: polite waiting. */
#ifndef RING_CORE_WAIT_H
#define RING_CORE_WAIT_H

#include "comm.h"

/** Waits until the work has ended, or until @p deadline (0: none, but that of its gate); the caller
 *  holds the lock. @return RING_OK or RING_IN_PROGRESS. */
ring_status wait_for_work(work *w, double deadline);
/** Between two looks at several works, of which none is over. @return true when to sleep. */
bool wait_between_looks(unsigned *looks);

#endif
