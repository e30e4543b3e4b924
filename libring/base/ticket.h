/* SPDX-License-Identifier: Apache-2.0
 *
 * ticket: reports the completion of an asynchronous operation, such as a transfer of a network
 * adapter or a kernel of an accelerator. The caller owns the ticket, which must stay at its address
 * until it is closed.
 */
#ifndef RING_TICKET_H
#define RING_TICKET_H

#include <ring/ring.h>
#include <stdatomic.h>

typedef struct ticket {
    _Atomic int status; /* RING_IN_PROGRESS until the operation has ended; then its result */
} ticket;

/** Prepares a ticket, before its operation is started. */
static inline void ticket_open(ticket *t)
{
    atomic_store_explicit(&t->status, RING_IN_PROGRESS, memory_order_relaxed);
}

/** Reports the end of the operation. A thread that reads the final status then also reads the bytes
 *  that the operation has moved (release / acquire). */
static inline void ticket_close(ticket *t, ring_status status)
{
    atomic_store_explicit(&t->status, (int)status, memory_order_release);
}

static inline ring_status ticket_status(const ticket *t)
{
    return (ring_status)atomic_load_explicit(&t->status, memory_order_acquire);
}

#endif
