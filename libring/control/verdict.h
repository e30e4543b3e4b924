/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict: the end of one communicator, on a proposal of a rank. The proposal goes up the tree,
 * also through ranks outside the communicator; the top takes the first and posts it (bulletin.h).
 */
#ifndef RING_CONTROL_VERDICT_H
#define RING_CONTROL_VERDICT_H

#include "membership_state.h"

/** Takes a proposal, unless its communicator has ended: in a fraction of a second there is a
 *  verdict. */
void verdict_receive(membership *m, connection *c, const control_message *reason);
/** Proposes to end the start, for a failure of this rank whose text is fail_text(): names rank and
 *  host. */
void verdict_propose_own(membership *m, ring_status status);
/** Makes it the verdict of the start, unless there is one, and announces it. */
void verdict_decide(membership *m, ring_status status, const char *text);
/** The status of that verdict, its text as this thread's failure. */
ring_status verdict_status(const membership *m);
/** A verdict was heard: its proposal and held sockets are dropped. */
void verdict_on_note(membership *m, const control_message *note);
/** The verdict of @p g was heard, unless it has one, or the loss of one of its ranks. */
void verdict_end_group(group *g, const control_message *note);

bool verdict_compose(membership *m, connection *c, control_message *out);
void verdict_tick(membership *m, double now);
/** Frees all proposals. */
void verdict_free(membership *m);

#endif
