/* SPDX-License-Identifier: Apache-2.0
 * members: lists the communicators of this process, so that threads can advance the orphans of all
 * of them. */
#ifndef RING_CORE_MEMBERS_H
#define RING_CORE_MEMBERS_H

#include "comm.h"

/** Adds a communicator, and starts to serve it with the progress thread if its settings ask for
 *  that. */
void members_add(ring_comm *comm);
/** Removes a communicator if it is in the list, and waits until no thread holds it. */
void members_remove(ring_comm *comm);
/** Iterates over the communicators that have orphans. The returned communicator is held, so that it
 *  is not freed, until it is passed as @p last. @param last  NULL in the first call.
 *  @return the next communicator; NULL after the last one. */
ring_comm *members_next(ring_comm *last);
/** As members_next(), over all communicators. @return NULL, too, if the list was not free by
 *  @p deadline. */
ring_comm *members_next_at_exit(ring_comm *last, double deadline);
/** Keeps a communicator from being freed until members_let_go(). */
void members_hold(ring_comm *comm);
void members_let_go(ring_comm *comm);
/** Wakes the sleeping threads of all communicators. */
void members_wake(void);

#endif
