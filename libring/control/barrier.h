/* SPDX-License-Identifier: Apache-2.0
 *
 * barrier: the barriers of the start. Each rank reports to the rank above it when it and all ranks
 * below it have arrived; rank 0 then sends the release down the tree.
 */
#ifndef RING_CONTROL_BARRIER_H
#define RING_CONTROL_BARRIER_H

#include "membership_state.h"

void barrier_receive(membership *m, connection *c, const control_message *message);
bool barrier_compose(membership *m, connection *c, control_message *out);
/** Fails the start if this rank has not finished it a second after the deadline. */
void barrier_tick(membership *m, double now);

#endif
