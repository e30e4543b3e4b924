/* SPDX-License-Identifier: Apache-2.0
 *
 * departure: leaving in order, and what the others do about it. Who leaves says goodbye to its
 * neighbours, and they tell it on. A rank whose way up has left dials another: the nearest rank
 * above that has not, else any lower one. So all who stay remain connected: each knows a rank
 * below its own, down to the lowest.
 */
#ifndef RING_CONTROL_DEPARTURE_H
#define RING_CONTROL_DEPARTURE_H

#include "membership.h"

/** Dials @p peer as a neighbour, unless it is one, has left, or is no rank. */
void departure_dial(membership *m, int peer);
/** @return true while @p peer, or any (-1), is being dialed so. */
bool departure_is_dialing(const membership *m, int peer);

void departure_hear(membership *m, connection *c, const control_message *message);
bool departure_speak(membership *m, connection *c, control_message *out);
void departure_tick(membership *m, double now);
/** A neighbour has said goodbye and closed. */
void departure_gone(membership *m, const connection *c);

#endif
