/* SPDX-License-Identifier: Apache-2.0
 * calls: starts calls whose arguments have been checked, for the public functions and for groups of
 * calls, and makes the one collective that the library itself uses. */
#ifndef RING_CORE_CALLS_H
#define RING_CORE_CALLS_H

#include "prepared.h"

/** Fails the communicator, because other ranks may have started the call and would wait for this
 * rank. The caller holds the lock. @return @p status, with fail_text() as it was. */
ring_status call_cannot_start(ring_comm *comm, ring_status status);
/** Starts a call. The caller holds the lock. @param beside  true if the same group starts calls of
 *  other communicators. @param[out] stays  the work if the caller must wait for it, else NULL. */
ring_status call_launch(const prepared_call *call, bool beside, work **stays);
/** Gathers @p bytes of each rank in place, and blocks until that is done. Unlike the public calls,
 *  it may be used while the communicator is starting. @param all  [bytes * ranks] */
ring_status call_all_gather(ring_comm *comm, void *all, size_t bytes);
/** Waits for a work that call_launch() returned, and recycles it. The caller holds the lock.
 *  @return RING_IN_PROGRESS if ring_call.after was not set in time; the work then continues. */
ring_status call_await(work *w);

#endif
