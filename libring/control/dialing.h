/* SPDX-License-Identifier: Apache-2.0
 * dialing: this rank's dialers (dialer.h), of every purpose. */
#ifndef RING_CONTROL_DIALING_H
#define RING_CONTROL_DIALING_H

#include "membership_state.h"

/** Starts a dialer like this one, which has the address, the purpose and the callback. */
ring_status dialing_start(membership *m, const dialer *like);
/** The same to the listener of @p peer: to its AF_UNIX name if @p local. */
ring_status dialing_start_to(membership *m, int peer, bool local, const dialer *like);
/** Drops dialers of one handshake_kind, or all (0), without calling back. */
void dialing_drop(membership *m, int kind);
/** Makes the tries that are due. */
void dialing_tick(membership *m, double now);

#endif
