/* SPDX-License-Identifier: Apache-2.0
 *
 * handout: sends rank 0's settings and the cards of all ranks down the tree. Each rank receives
 * them from its parent and sends them to its children, so that rank 0 serves only its own children.
 */
#ifndef RING_CONTROL_HANDOUT_H
#define RING_CONTROL_HANDOUT_H

#include "membership_state.h"

/** Begins to send the cards to the children; all cards must have arrived. */
void handout_begin(membership *m);
/** Handles CONTROL_TERMS and CONTROL_CARDS. */
void handout_receive(membership *m, connection *c, const control_message *message);
/** Composes the next of these messages for @p c. @return false if there is none. */
bool handout_compose(membership *m, connection *c, control_message *out);
/** Continues the start when the kernel has accepted all cards for the children. */
void handout_check(membership *m);

#endif
