/* SPDX-License-Identifier: Apache-2.0
 *
 * departure: lets a rank leave in order. The leaving rank says goodbye to its neighbours, which
 * announce to all other ranks that it has left. It keeps its connections until the neighbours with
 * higher numbers have connected to other ranks.
 */
#ifndef RING_CONTROL_DEPARTURE_H
#define RING_CONTROL_DEPARTURE_H

#include "membership_state.h"

/** Handles CONTROL_GOODBYE, CONTROL_LEFT and CONTROL_MOVED. */
void departure_receive(membership *m, connection *c, const control_message *message);
/** Composes the next of these messages for @p c. @return false if there is none. */
bool departure_compose(membership *m, connection *c, control_message *out);
/** Continues control_leave(), after each event. */
void departure_tick(membership *m, double now);

#endif
