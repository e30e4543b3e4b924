/* SPDX-License-Identifier: Apache-2.0
 *
 * departure: lets a rank leave in order. The leaving rank says goodbye to its neighbours, which
 * announce it to all others, and stays until the ranks below it are connected elsewhere.
 */
#ifndef RING_CONTROL_DEPARTURE_H
#define RING_CONTROL_DEPARTURE_H

#include "membership_state.h"

void departure_receive(membership *m, connection *c, const control_message *message);
bool departure_compose(membership *m, connection *c, control_message *out);
void departure_tick(membership *m, double now);

#endif
