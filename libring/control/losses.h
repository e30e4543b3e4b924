/* SPDX-License-Identifier: Apache-2.0
 *
 * losses: ranks that are gone, and the ways up around them. A loss is announced to all. A rank that
 * has lost its way up dials another: the nearest rank above that is there, else any lower one. So
 * the remaining ranks stay connected: each is connected to a rank below its own number, down to the
 * lowest. The rank that should be dialed so looks for ranks that do not come.
 */
#ifndef RING_CONTROL_LOSSES_H
#define RING_CONTROL_LOSSES_H

#include "membership_state.h"

/** This rank sees that @p rank is lost, @p why: fails the start, or announces it to all. */
void losses_report(membership *m, int rank, enum loss how, const char *why);
/** The same of the peer of @p c, which did what breaks the rules, e.g. "sent nothing".
 *  @param status  of a start that fails for it. */
void losses_distrust(membership *m, const connection *c, ring_status status, const char *what);
/** The same: a message over @p c breaks the rules. */
void losses_protocol_error(membership *m, const connection *c);
/** A note about a lost rank was heard. */
void losses_on_note(membership *m, const control_message *note);

/** A rank has left in order. */
void losses_left(membership *m, int rank);
/** Ranks have left or are lost: those below them should come to this rank soon. */
void losses_adopt_later(membership *m);
/** @return true if this rank has a way up, or is the top. */
bool losses_has_way_up(const membership *m);
/** A neighbour that had said goodbye has closed. */
void losses_on_close(membership *m, const connection *c);
/** Dials the ranks that this one should be connected to. */
void losses_tick(membership *m, double now);

#endif
