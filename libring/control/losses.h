/* SPDX-License-Identifier: Apache-2.0
 *
 * losses: reports lost ranks to all, and reconnects the remaining ranks around them. A rank whose
 * way up (its connection to a lower-numbered rank) is gone dials another rank: the nearest
 * remaining ancestor in the tree, or else any lower-numbered rank. So the remaining ranks stay
 * connected, with the lowest one at the top. A rank that should be dialed in this way in turn dials
 * those that do not connect to it, since they may have ended unnoticed.
 */
#ifndef RING_CONTROL_LOSSES_H
#define RING_CONTROL_LOSSES_H

#include "membership_state.h"

/** Reports that this rank has lost @p rank, for the reason @p why: fails the start, or announces
 * the loss to all ranks. */
void losses_report(membership *m, int rank, enum loss how, const char *why);
/** Reports the peer of @p c as lost because it violated the protocol; @p what completes a sentence,
 *  e.g. "sent nothing". @param status  of the start, if it fails for this reason. */
void losses_distrust(membership *m, const connection *c, ring_status status, const char *what);
/** Reports the peer of @p c as lost because it sent an invalid message. */
void losses_protocol_error(membership *m, const connection *c);
/** Handles a note about a lost rank. */
void losses_on_note(membership *m, const control_message *note);

/** Records that a rank has left in order. */
void losses_left(membership *m, int rank);
/** Schedules a search for ranks that should connect to this one, after others left or were lost. */
void losses_adopt_later(membership *m);
/** @return true if this rank has a way up, or is the top. */
bool losses_has_way_up(const membership *m);
/** Handles the end of the connection to a neighbour that has left or moved. */
void losses_on_close(membership *m, const connection *c);
/** Dials the ranks to which this one should be connected. */
void losses_tick(membership *m, double now);

#endif
