/* SPDX-License-Identifier: Apache-2.0
 *
 * handout: sends the settings and the cards of all ranks down the tree. Each rank receives
 * them from the rank above and passes them to the ranks below, so that rank 0 serves only its
 * children.
 */
#ifndef RING_CONTROL_HANDOUT_H
#define RING_CONTROL_HANDOUT_H

#include "membership_state.h"

/** Begins to send the cards to the ranks below; all cards must have arrived. */
void handout_begin(membership *m);
void handout_receive(membership *m, connection *c, const control_message *message);
bool handout_compose(membership *m, connection *c, control_message *out);
/** Continues the start when the kernel has accepted all cards for the ranks below. */
void handout_check(membership *m);

#endif
