/* SPDX-License-Identifier: Apache-2.0
 *
 * listeners: opens the sockets on which other ranks reach this one as long as it is a member: a TCP
 * listener, and an abstract AF_UNIX socket for ranks of its own host. Its card has both addresses.
 */
#ifndef RING_CONTROL_LISTENERS_H
#define RING_CONTROL_LISTENERS_H

#include "membership_state.h"

/** Binds both sockets and writes their addresses into this rank's card. They do not listen before
 *  listeners_open(), so no stranger can queue up there. Must be called without the lock. */
ring_status listeners_bind(membership *m, const credential *c);
/** Derives the key of the session, and admits ranks that prove that they have it. */
ring_status listeners_open(membership *m, const unsigned char session[HANDSHAKE_SESSION]);

#endif
