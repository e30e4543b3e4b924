/* SPDX-License-Identifier: Apache-2.0
 * calls: starts calls whose arguments were checked, and makes the collectives that the library
 * needs itself. */
#ifndef RING_CORE_CALLS_H
#define RING_CORE_CALLS_H

#include "prepared.h"

/** Starts a call. The caller holds the lock. @param beside  calls of other communicators start
 *  together with it. @param[out] stays  the work if the caller must wait for it, else NULL. */
ring_status call_launch(const prepared_call *call, bool beside, work **stays);
/** Runs an in-place all_gather of @p bytes per rank; a communicator that is still starting may use
 *  it. */
ring_status call_all_gather(ring_comm *comm, void *all, size_t bytes);
/** Waits for a work that call_launch() returned, and recycles it. The caller holds the lock. */
ring_status call_await(work *w);

#endif
