/* SPDX-License-Identifier: Apache-2.0
 *
 * bulletin: sends notes to all ranks by flooding. A rank that receives a new note keeps it
 * and sends it to its neighbours, once over each connection; a new connection gets all kept notes.
 *
 * Losses, at most two per rank, are kept for the life of the membership. Of verdicts, votes and
 * decisions about bulletin_most_ends() are kept: when there are more, the oldest are dropped, but
 * not before all neighbours have received them and have confirmed them or were bypassed. Of
 * statements only the latest BULLETIN_STATEMENTS are kept. So a rank that creates a communicator
 * after very many others have failed may not learn that this one had failed, too.
 */
#ifndef RING_CONTROL_BULLETIN_H
#define RING_CONTROL_BULLETIN_H

#include "membership_state.h"

#define BULLETIN_SETTLE_SECONDS \
    0.1                            /* until the last notes of a lost rank have arrived everywhere */
#define BULLETIN_GRACE_SECONDS 1.0 /* until a note that is sent at a deadline has arrived */

/** @return the limit of kept notes about ended communicators. It grows with the number of ranks:
 *  each rank votes when it shrinks a communicator and resigns when it frees one, and a rank that
 *  creates a communicator late needs all votes about it. */
static inline int bulletin_most_ends(int size)
{
    return BULLETIN_ENDS + 2 * size;
}

/** Keeps @p note, acts on it (control_rule) and forwards it, unless it is known already. */
void bulletin_post(membership *m, const control_message *note);
/** Does the same with a note that arrived over @p c, and counts it as a confirmation. */
void bulletin_receive(membership *m, connection *c, const control_message *note);
/** Composes the next note for @p c. @return false if it has all notes. */
bool bulletin_compose(membership *m, connection *c, control_message *out);
/** Bypasses neighbours that do not confirm notes, by dialing their neighbours in the tree. */
void bulletin_tick(membership *m, double now);
/** @return true if all neighbours, except bypassed ones, have confirmed all lasting notes. */
bool bulletin_is_spread(const membership *m);
/** @return the kept note of that kind, communicator and count; NULL if there is none. */
const control_message *bulletin_find(const membership *m, enum control_kind kind,
                                     uint64_t communicator, int count);
/** @return the latest closed round of the roll that @p present belongs to; 0 if no note about one
 *  is kept. */
int bulletin_last_round(const membership *m, const control_message *present);
/** Delivers the kept notes of one of the two logs to @p g (control_rule.group_note). */
void bulletin_replay(group *g, int which);

#endif
