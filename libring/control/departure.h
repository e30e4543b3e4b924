/* SPDX-License-Identifier: Apache-2.0
 * departure: leaving in order. A leaving rank says goodbye to its neighbours, which announce it. */
#ifndef RING_CONTROL_DEPARTURE_H
#define RING_CONTROL_DEPARTURE_H

#include "membership_state.h"

void departure_receive(membership *m, connection *c, const control_message *message);
bool departure_compose(membership *m, connection *c, control_message *out);
void departure_tick(membership *m, double now);

#endif
