/* SPDX-License-Identifier: Apache-2.0
 *
 * peers: how this rank reaches others: sending on all connections, the one that leads up, dialers
 * for every purpose, and dialing neighbours.
 */
#ifndef RING_CONTROL_PEERS_H
#define RING_CONTROL_PEERS_H

#include "membership_state.h"

/** @return the connection that leads up: to the lowest rank among the neighbours, below this one
 *  and not lost; while joining to rank 0. It may be of a rank that leaves, and waits for this one
 * to have another. NULL: this rank is the top. */
connection *peers_up(const membership *m);
/** @return true if one leads up to a rank that does not leave. */
bool peers_has_way_up(const membership *m);
/** After a change: sends what is due now on all connections, and wakes waiting callers. */
void peers_flush(membership *m);

/** Starts a dialer like this one, which has the address, the purpose and the callback. */
ring_status peers_start_dialer(membership *m, const dialer *like);
/** The same to the listener of @p peer: to its AF_UNIX name if @p local. */
ring_status peers_start_dialer_to(membership *m, int peer, bool local, const dialer *like);
/** Drops dialers of one handshake_kind, or all (0), without calling back. */
void peers_drop_dialers(membership *m, int kind);
/** Makes the tries that are due. */
void peers_tick(membership *m, double now);

/** Dials @p peer as a neighbour, unless it is one, is lost, has left, or is no rank. If it cannot
 * be reached a new way up is sought at once. */
void peers_dial_neighbour(membership *m, int peer);
/** The same, whether it has left or not, with a callback of the caller's. */
void peers_dial_neighbour_by(membership *m, int peer, void (*done)(dialer *d, ring_status, int fd));
/** A dial to a neighbour has succeeded with @p fd. */
void peers_welcome(dialer *d, int fd);
/** @return true while any of the ranks from @p first to @p last is being dialed so. */
bool peers_are_dialed(const membership *m, int first, int last);

#endif
