/* SPDX-License-Identifier: Apache-2.0
 * barrier: the start's barriers: arrivals are counted up the tree, the release goes down. */
#ifndef RING_CONTROL_BARRIER_H
#define RING_CONTROL_BARRIER_H

#include "membership_state.h"

void barrier_receive(membership *m, connection *c, const control_message *message);
bool barrier_compose(membership *m, connection *c, control_message *out);
/** A start that is not over long after its deadline is this rank's failure. */
void barrier_tick(membership *m, double now);

#endif
