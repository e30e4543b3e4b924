/* SPDX-License-Identifier: Apache-2.0
 * ucx_pass: makes progress on all links of the hub, in any thread that calls the library or, if no
 * thread does, in a thread of its own (the mover). All functions need the lock. */
#ifndef RING_UCX_PASS_H
#define RING_UCX_PASS_H

#include "ucx.h"

/** Makes one pass: makes UCP progress, and serves the links that have something to send. */
void ucx_pass(void);
/** Makes a pass for a caller that waits in a loop, and briefly releases the lock so that other
 *  threads can take it. */
void ucx_pass_politely(void);
/** Makes a pass that also sends all status words that are due, for a caller that is about to
 *  sleep. */
void ucx_settle(void);
/** Wakes the mover, because there are frames in flight that must progress even without calls. */
void ucx_stir(void);
/** Starts the mover, once per process. */
ring_status ucx_start_mover(void);
/** Breaks the link with the text @p why, and waits until none of its messages uses memory of
 *  regions. */
void ucx_stop_now(ucx_link *l, const char *why);
/** Frees the link, which must have no message in flight. */
void ucx_link_free(ucx_link *l);

#endif
