/* SPDX-License-Identifier: Apache-2.0
 *
 * id listener: keeps the sockets of the unique ids that this process has made, until rank 0 joins
 * by the id. The sockets are bound but do not listen, so no peer can connect before there is a
 * thread that authenticates it. They are closed after RING_INIT_TIMEOUT. The caller of any function
 * must hold the lock (control_thread.h).
 */
#ifndef RING_CONTROL_ID_LISTENER_H
#define RING_CONTROL_ID_LISTENER_H

#include "base.h"

/** Keeps the bound socket @p bound for @p id, and closes it after @p seconds. Owns the socket after
 *  this, even if it fails. @return RING_OK or RING_ERR_MEMORY. */
ring_status id_listener_add(const ring_unique_id *id, int bound, double seconds);
/** Removes the socket of @p id from the list. @return the socket, which the caller then owns; -1 if
 *  this process has not made @p id, or if the id was used or has expired. */
int id_listener_take(const ring_unique_id *id);
/** Closes this process's copy of the socket if it is a forked child; the process that made the id
 *  keeps its socket. */
void id_listener_forget_copy(const ring_unique_id *id);
/** Closes expired sockets. @return the time at which the next one expires. */
double id_listener_expire(double now);

#endif
