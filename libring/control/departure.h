/* SPDX-License-Identifier: Apache-2.0
 *
 * departure: leaving in order, and losses. A leaving rank says goodbye to its neighbours, which
 * announce it; losses are announced to all. A rank that has lost its way up dials another: the
 * nearest rank above that is there, else any lower one. So the remaining ranks stay connected: each
 * is connected to a rank below its own number, down to the lowest. The rank that should be dialed
 * so looks for ranks that do not come.
 */
#ifndef RING_CONTROL_DEPARTURE_H
#define RING_CONTROL_DEPARTURE_H

#include "membership.h"

void departure_hear(membership *m, connection *c, const control_message *message);
bool departure_speak(membership *m, connection *c, control_message *out);
void departure_tick(membership *m, double now);
/** A neighbour has said goodbye and closed. */
void departure_gone(membership *m, const connection *c);
/** This rank sees that @p rank is lost, @p why: fails the start, or announces it to all. */
void departure_lost(membership *m, int rank, enum loss how, const char *why);
/** A note about a lost rank was heard. */
void departure_hear_lost(membership *m, const control_message *note);
/** Says goodbye, if started, and ends the connections. Not locked; not by the control thread. */
void departure_run(membership *m);

#endif
