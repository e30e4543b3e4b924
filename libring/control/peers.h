/* SPDX-License-Identifier: Apache-2.0
 *
 * peers: finds and opens the connections of this rank. It finds the connection that leads up, sends
 * messages on all connections, and starts dialers: for neighbours in the tree, for joining, and for
 * data sockets.
 */
#ifndef RING_CONTROL_PEERS_H
#define RING_CONTROL_PEERS_H

#include "membership_state.h"

/** @return the connection that leads up. It is the one to the lowest-numbered neighbour that is not
 *  lost, if that has a lower number than this rank; while joining, the one to rank 0. The neighbour
 *  may be leaving, and waiting until this rank has found another way up. NULL: this rank is the
 * top. */
connection *peers_up(const membership *m);
/** @return true if a connection leads up to a rank that has not said goodbye. */
bool peers_has_way_up(const membership *m);
/** Sends all messages that follow from a change of state, and wakes waiting callers. */
void peers_flush(membership *m);

/** Starts a dialer. @param like  has the terms, address, purpose, times and callback, which are
 *  copied. @return RING_OK or RING_ERR_MEMORY. */
ring_status peers_start_dialer(membership *m, const dialer *like);
/** Starts a dialer like @p like to the listener of @p peer: AF_UNIX if @p local, else TCP. */
ring_status peers_start_dialer_to(membership *m, int peer, bool local, const dialer *like);
/** Writes why a dialer to the maker of an id has failed with RING_ERR_PEER. */
void peers_id_ended(const dialer *d, char text[CONTROL_TEXT]);
/** Drops the dialers of one handshake_kind (0: all dialers) without calling their callbacks. */
void peers_drop_dialers(membership *m, int kind);
/** Starts the tries of dialers that are due. */
void peers_tick(membership *m, double now);

/** Dials @p peer as a neighbour, unless it is a neighbour already, is lost, has left, or is not a
 * valid rank. If it cannot be reached, this rank looks for a new way up at once. */
void peers_dial_neighbour(membership *m, int peer);
/** Dials @p peer as a neighbour with the callback @p done, even if it is lost or has left. */
void peers_dial_neighbour_by(membership *m, int peer, void (*done)(dialer *d, ring_status, int fd));
/** Makes the connection @p fd that @p d has opened an edge of the tree. */
void peers_welcome(dialer *d, int fd);
/** @return true while any rank from @p first to @p last is being dialed as a neighbour. */
bool peers_are_dialed(const membership *m, int first, int last);

#endif
