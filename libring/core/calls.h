/* SPDX-License-Identifier: Apache-2.0
 * calls: starting calls that were checked, and calls of the library itself. */
#ifndef RING_CORE_CALLS_H
#define RING_CORE_CALLS_H

#include "prepared.h"

/** Starts a call. The caller holds the lock. @param beside  calls of other communicators start
 *  with it. @param[out] stays  the work if it is to be waited for, else NULL. */
ring_status call_launch(const prepared_call *call, bool beside, work **stays);
/** An all_gather of @p bytes a rank in place, also of a communicator that starts. */
ring_status call_all_gather(ring_comm *comm, void *all, size_t bytes);
/** Waits for such a work, and gives it back. The caller holds the lock. */
ring_status call_await(work *w);

#endif
