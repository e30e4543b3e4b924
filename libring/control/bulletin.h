/* SPDX-License-Identifier: Apache-2.0
 *
 * bulletin: notes to all ranks, by flooding. A rank that hears a new note keeps it and sends it to
 * its neighbours, once over each connection; a new connection gets all kept notes. Losses, two a
 * rank at most, are kept for the membership's life; of verdicts, votes and decisions the latest
 * bulletin_most_ends() at most, and BULLETIN_ENDS / 2 less at least, or more while a neighbour has
 * not got them yet, or has not confirmed them and is not bypassed; of statements the latest
 * BULLETIN_STATEMENTS. So a rank that makes a communicator after so many others have failed may not
 * hear that this one had failed before.
 */
#ifndef RING_CONTROL_BULLETIN_H
#define RING_CONTROL_BULLETIN_H

#include "membership_state.h"

#define BULLETIN_SETTLE_SECONDS 0.1 /* for the last notes of a lost rank to arrive everywhere */
#define BULLETIN_GRACE_SECONDS 1.0  /* for a note that was due at a deadline to arrive */

/** The most kept notes about ended communicators. Each rank votes when it shrinks one, and resigns
 *  when it frees one: a rank that is late to make a communicator needs all its votes. */
static inline int bulletin_most_ends(int size)
{
    return BULLETIN_ENDS + 2 * size;
}

/** Keeps @p note, acts on it (control_rule) and sends it on, unless it is known. */
void bulletin_post(membership *m, const control_message *note);
/** The same for a note that came over @p c. */
void bulletin_receive(membership *m, connection *c, const control_message *note);
/** The next note for @p c. @return false: it has all. */
bool bulletin_compose(membership *m, connection *c, control_message *out);
/** Bypasses neighbours that do not confirm notes: dials their neighbours in the tree. */
void bulletin_tick(membership *m, double now);
/** @return true if all neighbours have confirmed all lasting notes; bypassed ones do not count. */
bool bulletin_is_spread(const membership *m);
/** @return the kept note of that kind, communicator and count; NULL: none. */
const control_message *bulletin_find(const membership *m, enum control_kind kind,
                                     uint64_t communicator, int count);
/** @return the latest round of the roll in @p present that is over; 0: none is kept. */
int bulletin_last_round(const membership *m, const control_message *present);
/** Gives what is kept, in one of the two, to @p g (control_rule.concern). */
void bulletin_replay(group *g, int which);

#endif
