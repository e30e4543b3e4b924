/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict: ends a communicator on the proposal of a rank. The proposal is passed up the tree, also
 * through ranks outside the communicator. The rank at the top accepts the first proposal and posts
 * it as the verdict (bulletin.h), so that all ranks report the same failure.
 */
#ifndef RING_CONTROL_VERDICT_H
#define RING_CONTROL_VERDICT_H

#include "membership_state.h"

/** Handles a proposal (CONTROL_PROPOSAL). If its communicator has not ended, it gets a verdict
 * within a fraction of a second. */
void verdict_receive(membership *m, connection *c, const control_message *reason);
/** Proposes to end all communicators of this rank because it has failed. The reason is its rank and
 *  host, and fail_text(). */
void verdict_propose_own(membership *m, ring_status status);
/** Proposes this failure as the verdict of a communicator, unless it has one. */
void verdict_propose(group *g, ring_status status, const char *text);
/** Makes this failure the verdict of the start, unless there is one, and announces it. */
void verdict_decide(membership *m, ring_status status, const char *text);
/** Fails with the verdict of the start. @return its status, with its text in fail_text(). */
ring_status verdict_status(const membership *m);
/** Handles the note of a verdict: drops the proposal for its communicator and the sockets that are
 *  held for it. */
void verdict_on_note(membership *m, const control_message *note);
/** Ends @p g by a note of its verdict or of the loss of one of its ranks. Does nothing if it has
 *  ended. */
void verdict_end_group(group *g, const control_message *note);

/** Composes the next proposal for @p c, if it leads up. @return false if there is none. */
bool verdict_compose(membership *m, connection *c, control_message *out);
/** Makes the proposals that control_suspect() has delayed, and decides on overdue ones. */
void verdict_tick(membership *m, double now);
/** Frees all proposals. */
void verdict_free(membership *m);

#endif
