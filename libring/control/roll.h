/* SPDX-License-Identifier: Apache-2.0
 *
 * roll: agrees on which ranks have arrived at a common call by a deadline. A roll consists of
 * rounds. Each rank that arrives announces that to all ranks (CONTROL_PRESENT). The lowest
 * remaining rank of the membership closes the round when all ranks have arrived, or at the earliest
 * of their deadlines, and announces the list of arrived ranks (CONTROL_ROLL). So all ranks of a
 * round get the same answer. A rank that arrives too late for a round is in the next one. The
 * lowest rank also closes rounds of communicators that it is not in, so an announcement has the
 * number of ranks to wait for, and rank numbers are those of the membership.
 */
#ifndef RING_CONTROL_ROLL_H
#define RING_CONTROL_ROLL_H

#include "membership_state.h"

/** Handles a note about an arrived rank (CONTROL_PRESENT) or a closed round (CONTROL_ROLL). */
void roll_on_note(membership *m, const control_message *note);
/** Handles a note about a round that was closed before this rank created @p g. */
void roll_replay(group *g, const control_message *note);
/** Closes the rounds that are due, if this rank is the lowest remaining one. */
void roll_tick(membership *m, double now);
/** Frees the rolls without an open round of a communicator that this rank has left. */
void roll_forget(membership *m, uint64_t communicator);
/** Frees all rolls. */
void roll_free(membership *m);

#endif
