/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict: how a communicator ends. Whoever fails proposes a reason upwards; the top of the tree
 * takes the first that it hears and says so to its neighbours, who pass it on. A rank that
 * sees another one die decides at once: every such rank says the same of it, and whatever part
 * of the tree the dead one cuts off has such a rank.
 */
#ifndef RING_CONTROL_VERDICT_H
#define RING_CONTROL_VERDICT_H

#include "membership.h"

/** The reason for all, or for the top to decide. In a fraction of a second there is a verdict. */
void verdict_propose(membership *m, ring_status status, const char *text);
/** The same for a failure of this rank, whose text is fail_text(): names rank and host. */
void verdict_propose_own(membership *m, ring_status status);
/** Makes it the verdict, unless there is one, and tells it. */
void verdict_decide(membership *m, ring_status status, const char *text);
/** @p rank is gone, @p why. */
void verdict_lost(membership *m, int rank, const char *why);
/** All neighbours have said that they have it too; those that do not are gone around. */
bool verdict_is_spread(const membership *m);
/** The verdict's status, its text as this thread's failure. */
ring_status verdict_status(const membership *m);

void verdict_hear(membership *m, connection *c, const control_message *message);
bool verdict_speak(membership *m, connection *c, control_message *out);
void verdict_tick(membership *m, double now);

#endif
