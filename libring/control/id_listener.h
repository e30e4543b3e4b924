/* SPDX-License-Identifier: Apache-2.0
 *
 * id listener: the ports of unique ids made here and not joined yet. They are bound but do not
 * listen, so no peer can connect before a thread would authenticate it; they are closed after
 * RING_INIT_TIMEOUT. All functions need the lock (control_thread.h).
 */
#ifndef RING_CONTROL_ID_LISTENER_H
#define RING_CONTROL_ID_LISTENER_H

#include "base.h"

/** Remembers @p bound (owned) for @p id, for @p seconds. */
ring_status id_listener_add(const ring_unique_id *id, int bound, double seconds);
/** Hands the socket over; -1 if @p id was not made here, or was joined or given back already. */
int id_listener_take(const ring_unique_id *id);
/** After a fork the child has a copy: closes it unless this process made it. */
void id_listener_forget_copy(const ring_unique_id *id);
/** Gives back what is too old. @return when the next one will be. */
double id_listener_expire(double now);

#endif
