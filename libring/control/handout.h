/* SPDX-License-Identifier: Apache-2.0
 * handout: the cards of all ranks, from the rank above to the ranks below. */
#ifndef RING_CONTROL_HANDOUT_H
#define RING_CONTROL_HANDOUT_H

#include "membership_state.h"

/** All cards are here: hands them on. */
void handout_begin(membership *m);
void handout_receive(membership *m, connection *c, const control_message *message);
bool handout_compose(membership *m, connection *c, control_message *out);
/** Goes on with the start once the kernel has all cards for the ranks below. */
void handout_check(membership *m);

#endif
