/* SPDX-License-Identifier: Apache-2.0
 *
 * barrier: passes the barriers of the start (control_agree()). Each rank reports to its parent in
 * the tree when it and all ranks of its subtree have arrived. When all ranks have arrived, rank 0
 * sends the release (CONTROL_GO) down the tree.
 */
#ifndef RING_CONTROL_BARRIER_H
#define RING_CONTROL_BARRIER_H

#include "membership_state.h"

/** Handles CONTROL_READY and CONTROL_GO. */
void barrier_receive(membership *m, connection *c, const control_message *message);
/** Composes the next message about a barrier for @p c. @return false if there is none. */
bool barrier_compose(membership *m, connection *c, control_message *out);
/** Fails the start if this rank has not entered the next barrier a second after the deadline. */
void barrier_tick(membership *m, double now);

#endif
