/* SPDX-License-Identifier: Apache-2.0
 *
 * roll: agrees on which ranks have arrived at a common call by a deadline. Each arriving rank
 * announces itself to all ranks (CONTROL_PRESENT). The lowest remaining rank of the membership
 * closes the round when all ranks have arrived, or at the earliest of their deadlines, and
 * announces the list of arrived ranks (CONTROL_ROLL). So all ranks of a round get the same answer.
 * A rank that arrives too late for a round is in the next one. The lowest rank also closes rounds
 * of communicators that it is not in: an announcement has the number of ranks to wait for, and
 * ranks are numbered as in the membership.
 */
#ifndef RING_CONTROL_ROLL_H
#define RING_CONTROL_ROLL_H

#include "membership_state.h"

/** Handles a note about an arrived rank or about the end of a round. */
void roll_on_note(membership *m, const control_message *note);
/** Handles the end of a round that was announced before this rank created @p g. */
void roll_replay(group *g, const control_message *note);
/** Closes the rounds that are due, if it is this rank that closes rounds. */
void roll_tick(membership *m, double now);
/** Frees the closed rolls of a communicator that this rank has left. */
void roll_forget(membership *m, uint64_t communicator);
/** Frees all rolls. */
void roll_free(membership *m);

#endif
