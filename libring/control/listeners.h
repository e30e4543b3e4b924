/* SPDX-License-Identifier: Apache-2.0
 *
 * listeners: opens the sockets on which a rank accepts connections of other ranks: a TCP listener,
 * and an abstract AF_UNIX listener for the ranks of its own host. The rank's card has both
 * addresses.
 */
#ifndef RING_CONTROL_LISTENERS_H
#define RING_CONTROL_LISTENERS_H

#include "membership_state.h"

/** Binds both sockets and writes their addresses into this rank's card. They do not listen before
 *  listeners_open(), so strangers cannot connect earlier. Must be called without the lock. */
ring_status listeners_bind(membership *m, const credential *c);
/** Derives the key of the session from the job's key, and listens on both sockets. Only ranks that
 *  prove that they have the key are admitted. */
ring_status listeners_open(membership *m, const unsigned char session[HANDSHAKE_SESSION]);

#endif
