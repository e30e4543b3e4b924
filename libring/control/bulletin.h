/* SPDX-License-Identifier: Apache-2.0
 *
 * bulletin: sends notes, which are messages to all ranks, by flooding. A rank that receives a new
 * note keeps it and sends it to its neighbours, once over each connection. A new connection gets
 * all kept notes.
 *
 * There are two logs. The lasting log keeps losses, at most two per rank, for the life of the
 * membership. It keeps about bulletin_most_ends() of the other notes: when there are more, the
 * oldest are dropped after all neighbours have received them. A neighbour confirms a note by
 * sending it, too. A neighbour that does not confirm notes in time is bypassed: this rank dials
 * that rank's own neighbours in the tree. The recent log keeps the latest BULLETIN_STATEMENTS
 * statements. So a rank that creates a communicator after very many others have failed may not get
 * the verdict of this communicator.
 */
#ifndef RING_CONTROL_BULLETIN_H
#define RING_CONTROL_BULLETIN_H

#include "membership_state.h"

/** s: the time in which the last notes of a lost rank arrive at all others. */
#define BULLETIN_SETTLE_SECONDS 0.1
/** s: the time in which a note that is sent at a deadline arrives. */
#define BULLETIN_GRACE_SECONDS 1.0

/** @return the limit of kept notes in the lasting log, without losses. It grows with the number of
 *  ranks: each rank votes when it shrinks a communicator and resigns when it frees one, and a rank
 *  that creates a communicator late needs all votes about it. */
static inline int bulletin_most_ends(int size)
{
    return BULLETIN_ENDS + 2 * size;
}

/** Keeps @p note, handles it by its control_rule and forwards it, unless this rank has kept an
 * equal note before. */
void bulletin_post(membership *m, const control_message *note);
/** Posts a note that has arrived over @p c, and counts it as the peer's confirmation. */
void bulletin_receive(membership *m, connection *c, const control_message *note);
/** Composes the next note for @p c. @return false if all notes for it have been sent. */
bool bulletin_compose(membership *m, connection *c, control_message *out);
/** Bypasses neighbours that have not confirmed notes in time. */
void bulletin_tick(membership *m, double now);
/** @return true if all neighbours, except bypassed ones, have confirmed all lasting notes. */
bool bulletin_is_spread(const membership *m);
/** @return the kept note of that kind, communicator and count; NULL if there is none. */
const control_message *bulletin_find(const membership *m, enum control_kind kind,
                                     uint64_t communicator, int count);
/** @return the latest closed round of the roll of the arrival @p present; 0 if no note about a
 * closed round is kept. */
int bulletin_last_round(const membership *m, const control_message *present);
/** Delivers the kept notes about @p g to it (control_rule.group_note).
 *  @param which  the log: BULLETIN_LASTING or BULLETIN_RECENT. */
void bulletin_replay(group *g, int which);

#endif
