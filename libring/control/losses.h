/* SPDX-License-Identifier: Apache-2.0
 *
 * losses: reports lost ranks to all others, and reconnects the remaining ranks around them. Each
 * rank but the top has a way up, which is a connection to a lower-numbered rank: first to its
 * parent in the tree. When the way up ends, the rank dials another one: its nearest remaining
 * ancestor in the tree, else the lowest remaining rank. So the remaining ranks stay connected, and
 * the lowest of them is the top. Each rank also computes which ranks should dial it, and dials
 * those that have not connected after a while, since such a rank may have ended at a time when no
 * neighbour could report its loss.
 */
#ifndef RING_CONTROL_LOSSES_H
#define RING_CONTROL_LOSSES_H

#include "membership_state.h"

/** Reports that this rank has lost @p rank, for the reason @p why. During the start, the start
 * fails; after it, the loss is announced to all ranks. */
void losses_report(membership *m, int rank, enum loss how, const char *why);
/** Reports the peer of @p c as lost because it violated the protocol.
 *  @param status  the status with which the start fails, if it has not ended.
 *  @param what    completes the sentence that begins with the rank, e.g. "sent nothing". */
void losses_distrust(membership *m, const connection *c, ring_status status, const char *what);
/** Reports the peer of @p c as lost because it sent an invalid message. */
void losses_protocol_error(membership *m, const connection *c);
/** Handles a note that a rank was lost (CONTROL_LOST). */
void losses_on_note(membership *m, const control_message *note);

/** Records that a rank has left in order. */
void losses_left(membership *m, int rank);
/** Schedules the search for ranks that should have connected to this one. It is called after a rank
 *  has left or was lost. */
void losses_adopt_later(membership *m);
/** @return true if this rank has a way up, or is the top. */
bool losses_has_way_up(const membership *m);
/** Handles the end of the connection to a neighbour that has left, or has moved to another way up.
 */
void losses_on_close(membership *m, const connection *c);
/** Dials a new way up, and the ranks that should have connected to this one, when it is time. */
void losses_tick(membership *m, double now);

#endif
