/* SPDX-License-Identifier: Apache-2.0
 *
 * roll: which ranks have come to a common call, by a deadline. Each rank that comes announces it to
 * all (CONTROL_PRESENT); the lowest rank of the membership that is there closes the round, once all
 * have come or at the earliest of their deadlines, and announces the ranks that had come
 * (CONTROL_ROLL). So all ranks of a round have one answer. A rank that came too late for a round is
 * in the next one. The lowest rank closes rounds of communicators that it is not in, too: a roll
 * has the number of ranks that it wants, and ranks are those of the membership.
 */
#ifndef RING_CONTROL_ROLL_H
#define RING_CONTROL_ROLL_H

#include "membership_state.h"

/** Takes a note of a rank that came, or of the end of a round. */
void roll_on_note(membership *m, const control_message *note);
/** Takes the end of a round from before @p g was made here. */
void roll_replay(group *g, const control_message *note);
/** Closes rounds that are due and this rank's to close. */
void roll_tick(membership *m, double now);
/** This rank has left the communicator. */
void roll_forget(membership *m, uint64_t communicator);
/** Frees all. */
void roll_free(membership *m);

#endif
