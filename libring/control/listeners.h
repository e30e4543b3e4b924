/* SPDX-License-Identifier: Apache-2.0
 *
 * listeners: where other ranks reach this one, for as long as it is a member: a TCP listener, and
 * an abstract AF_UNIX name for its own host. Both are in its card.
 */
#ifndef RING_CONTROL_LISTENERS_H
#define RING_CONTROL_LISTENERS_H

#include "membership_state.h"

/** Binds both, and writes the addresses into this rank's card. They listen only from
 *  listeners_open() on, so no stranger waits there before. Not locked. */
ring_status listeners_bind(membership *m, const credential *c);
/** The session is known: proves by its key from here on, and admits its ranks. */
ring_status listeners_open(membership *m, const unsigned char session[HANDSHAKE_SESSION]);
#endif
