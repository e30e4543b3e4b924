/* SPDX-License-Identifier: Apache-2.0
 * ucx_pass: progresses all links of the hub, from any thread that calls the library or, if no
 * thread does, from one of its own. All functions need the lock. */
#ifndef RING_UCX_PASS_H
#define RING_UCX_PASS_H

#include "ucx.h"

/** Makes one pass: progresses UCP, and serves the links that have something to send. */
void ucx_pass(void);
/** The same for a caller that waits: it briefly releases the lock, to let other threads in. */
void ucx_pass_politely(void);
/** The same, and sends all status words that are due, because the caller is about to sleep. */
void ucx_settle(void);
/** Wakes the thread of ucx_start_mover(): frames are in flight that must progress without calls. */
void ucx_stir(void);
/** Starts, once, the thread that makes passes while no thread calls the library. */
ring_status ucx_start_mover(void);
/** Breaks the link, and waits until none of its operations uses memory of regions. */
void ucx_stop_now(ucx_link *l, const char *why);
/** Frees the link, which must have no operation in flight. */
void ucx_link_free(ucx_link *l);

#endif
