/* SPDX-License-Identifier: Apache-2.0
 *
 * bulletin: what all ranks are told. Whoever has a note that it did not know keeps it and tells
 * its neighbours, each connection once; who connects later is told all that is kept. Losses, two
 * a rank at most, are kept for the membership's life; of verdicts, votes and decisions the latest
 * bulletin_most_ends() at most, and BULLETIN_ENDS / 2 less at least, or more while a neighbour has
 * still to be told of them, or to say that it knows them and is not gone around; of statements the
 * latest BULLETIN_STATEMENTS. So a rank that makes a communicator after so many others have failed
 * may not hear that this one had failed before.
 */
#ifndef RING_CONTROL_BULLETIN_H
#define RING_CONTROL_BULLETIN_H

#include "membership.h"

/** Each rank votes when it shrinks a communicator, and resigns when it frees one: a rank that is
 *  late to make one needs all votes of it. */
static inline int bulletin_most_ends(int size)
{
    return BULLETIN_ENDS + 2 * size;
}

/** Keeps @p note, applies and tells it, unless it is known. */
void bulletin_post(membership *m, const control_message *note);
/** One that came over @p c. */
void bulletin_hear(membership *m, connection *c, const control_message *note);
/** The next one for @p c. @return false: it knows all. */
bool bulletin_speak(membership *m, connection *c, control_message *out);
/** Goes around neighbours that do not say that they know. */
void bulletin_tick(membership *m, double now);
/** All neighbours have said that they know all that lasts; those that do not are gone around. */
bool bulletin_is_spread(const membership *m);
/** The kept one of that kind, communicator and count; NULL: none. */
const control_message *bulletin_find(const membership *m, enum control_kind kind,
                                     uint64_t communicator, int count);
/** The latest round that is over of the roll that a rank has come to; 0: none is kept. */
int bulletin_last_round(const membership *m, const control_message *present);
/** Gives what is kept, in one of the two, to group_hear(). */
void bulletin_replay(group *g, int which);

#endif
