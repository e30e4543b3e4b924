/* SPDX-License-Identifier: Apache-2.0
 *
 * neighbours: the connections of this rank to others: the one that leads up, sending on all of
 * them, and dialing more.
 */
#ifndef RING_CONTROL_NEIGHBOURS_H
#define RING_CONTROL_NEIGHBOURS_H

#include "membership_state.h"

/** @return the connection that leads up: to the lowest rank among the neighbours, below this one
 *  and not lost; while joining to rank 0. NULL: this rank is the top. */
connection *neighbours_up(const membership *m);
/** After a change: sends what is due now on all connections, and wakes waiting callers. */
void neighbours_flush(membership *m);

/** Dials @p peer as a neighbour, unless it is one, has left, or is no rank. If it cannot be reached
 *  a new way up is sought at once. */
void neighbours_dial(membership *m, int peer);
/** The same, whether it has left or not, with a callback of the caller's. */
void neighbours_dial_by(membership *m, int peer, void (*done)(dialer *d, ring_status, int fd));
/** A dial to a neighbour has succeeded with @p fd. */
void neighbours_welcome(dialer *d, int fd);
/** @return true while @p peer, or any (-1), is being dialed so. */
bool neighbours_are_dialed(const membership *m, int peer);

#endif
