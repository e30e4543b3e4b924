/* SPDX-License-Identifier: Apache-2.0
 * ucx_pass: progresses all links of the hub, from any thread that calls the library or, if no
 * thread does, from one of its own. All functions need the lock. */
#ifndef RING_UCX_PASS_H
#define RING_UCX_PASS_H

#include "ucx.h"

/** Moves everything; with the lock held. */
void ucx_pass(void);
/** The same for who waits: lets others in. */
void ucx_pass_politely(void);
/** The same, and tells all words that are owed: nobody may move the hub for long. */
void ucx_settle(void);
/** Frames are under way: they go on also if nobody calls. */
void ucx_stir(void);
/** Makes the thread that moves them. */
ring_status ucx_start_mover(void);
/** Breaks the link, until nothing of it uses memory of others. */
void ucx_stop_now(ucx_link *l, const char *why);
/** Frees the link. No operation of it is under way. */
void ucx_link_free(ucx_link *l);

#endif
