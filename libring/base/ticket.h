/* SPDX-License-Identifier: Apache-2.0
 *
 * ticket: completion of an asynchronous operation: a transfer of a network adapter, a kernel of an
 * accelerator. The caller owns the ticket, which must stay in place until it is closed.
 */
#ifndef RING_TICKET_H
#define RING_TICKET_H

#include <ring/ring.h>
#include <stdatomic.h>

typedef struct ticket {
    _Atomic int status; /* RING_IN_PROGRESS until it is over */
} ticket;

static inline void ticket_open(ticket *t)
{
    atomic_store_explicit(&t->status, RING_IN_PROGRESS, memory_order_relaxed);
}

/** The moved bytes are visible to threads that see the final status (release / acquire). */
static inline void ticket_close(ticket *t, ring_status status)
{
    atomic_store_explicit(&t->status, (int)status, memory_order_release);
}

static inline ring_status ticket_status(const ticket *t)
{
    return (ring_status)atomic_load_explicit(&t->status, memory_order_acquire);
}

/** Has those who wait look again, for something is over that no descriptor tells of. Any thread
 *  that holds no lock. */
void ticket_wake_all(void);
/** @param wake  called by ticket_wake_all(). Once a process. */
void ticket_on_wake(void (*wake)(void));

#endif
