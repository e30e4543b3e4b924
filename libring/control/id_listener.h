/* SPDX-License-Identifier: Apache-2.0
 *
 * id listener: keeps the sockets of unique ids that this process made and that rank 0 has not
 * joined yet. The sockets are bound but do not listen, so no peer can connect before there is a
 * thread that authenticates it. They are closed after RING_INIT_TIMEOUT. All functions need the
 * lock (control_thread.h).
 */
#ifndef RING_CONTROL_ID_LISTENER_H
#define RING_CONTROL_ID_LISTENER_H

#include "base.h"

/** Keeps the socket @p bound for @p id, for @p seconds; owns it from now on. */
ring_status id_listener_add(const ring_unique_id *id, int bound, double seconds);
/** @return the socket, which the caller owns; -1 if this process has not made @p id, or the id was
 *  joined or has expired. */
int id_listener_take(const ring_unique_id *id);
/** Closes the copy of the socket that a forked child has; the process that made it keeps it. */
void id_listener_forget_copy(const ring_unique_id *id);
/** Closes expired sockets. @return when the next one expires. */
double id_listener_expire(double now);

#endif
