/* SPDX-License-Identifier: Apache-2.0
 *
 * doors: where other ranks reach this one, for as long as it is a member: a TCP listener, and an
 * abstract AF_UNIX name for its own host. Both are in its card.
 */
#ifndef RING_CONTROL_DOORS_H
#define RING_CONTROL_DOORS_H

#include "membership.h"

/** Listens, and writes the addresses into this rank's card. Not locked. */
ring_status doors_listen(membership *m, const credential *c);
/** The communicator is known: proves by its key from here on, and lets its ranks in. */
ring_status doors_open(membership *m, const unsigned char session[HANDSHAKE_SESSION]);
/** Dials @p peer's door, the local one where @p local, as @p manner says: purpose, patience, and
 *  what to do in the end. */
ring_status doors_dial(membership *m, int peer, bool local, const dialer *manner);

#endif
