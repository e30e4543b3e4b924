/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict: ends a communicator on the proposal of a rank. The proposal is passed up the tree, also
 * through ranks outside the communicator. The top accepts the first one and posts it as the verdict
 * (bulletin.h), so that all ranks report the same failure.
 */
#ifndef RING_CONTROL_VERDICT_H
#define RING_CONTROL_VERDICT_H

#include "membership_state.h"

/** Handles a proposal: unless its communicator has ended, it has a verdict within a fraction of a
 *  second. */
void verdict_receive(membership *m, connection *c, const control_message *reason);
/** Proposes to end all communicators because of this rank's failure, whose text is fail_text();
 * adds its rank and host. */
void verdict_propose_own(membership *m, ring_status status);
/** Makes this failure the verdict of the start, unless there is one, and announces it. */
void verdict_decide(membership *m, ring_status status, const char *text);
/** @return the status of the start's verdict, with its text as fail_text(). */
ring_status verdict_status(const membership *m);
/** Handles a verdict: drops its proposal, and the sockets held for its communicator. */
void verdict_on_note(membership *m, const control_message *note);
/** Ends @p g, unless it has ended, by its verdict or by the loss of one of its ranks. */
void verdict_end_group(group *g, const control_message *note);

bool verdict_compose(membership *m, connection *c, control_message *out);
void verdict_tick(membership *m, double now);
/** Frees all proposals. */
void verdict_free(membership *m);

#endif
