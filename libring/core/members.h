/* SPDX-License-Identifier: Apache-2.0
 * members: the communicators of this process. */
#ifndef RING_CORE_MEMBERS_H
#define RING_CORE_MEMBERS_H

#include "comm.h"

void members_add(ring_comm *comm);
void members_remove(ring_comm *comm);
/** @return the first communicator behind @p last (NULL: the first one) that has orphans, held so
 *  that it is not freed; NULL: none. @p last is let go. */
ring_comm *members_next(ring_comm *last);
void members_hold(ring_comm *comm);
void members_let_go(ring_comm *comm);
/** Ends the sleeps of all. */
void members_wake(void);

#endif
