/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerator: what computes on memory that the host must not touch, on its own and in the order in
 * which it is asked. The engine asks it for each fold of a call whose buffers are such memory, and
 * goes on with something else meanwhile.
 *
 * Adapters of a network may read and write its memory themselves, if it shares that.
 */
#ifndef RING_ACCELERATOR_H
#define RING_ACCELERATOR_H

#include "kernels.h"
#include "pci_distance.h"
#include "ticket.h"

/** How adapters come to a piece of an accelerator's memory. */
typedef struct accelerator_share {
    int dmabuf;      /* descriptor, the taker's to close; -1: it has none        */
    uint64_t offset; /* of the piece in the dma-buf                              */
    bool by_address; /* adapters' drivers know its addresses as they know those of
                        the host's memory                                        */
} accelerator_share;

typedef struct accelerator accelerator;
struct accelerator {
    const char *name;

    /** kernel_fold(), later. Operands lie in the accelerator's memory or in the host's, and stay as
     *  they are until it is over.
     *  @param over  opened here, and closed when it is over, with ticket_wake_all() after it, from
     *               any thread; NULL: the next fold's will tell. */
    ring_status (*fold)(const accelerator *a, const kernel_operand *outs, int out_count,
                        const kernel_operand *ins, int in_count, size_t count, ring_dtype dtype,
                        ring_op op, int divisor, ticket *over);

    /** Returns when all that was asked for is over, or will touch no memory any more. */
    void (*settle)(const accelerator *a);

    /** Readies memory for adapters. What folds have written there is visible to them once the fold
     *  is over; what they write is visible to folds after flush(). Any thread. NULL: adapters
     *  cannot touch it, and the next two mean nothing.
     *  @return RING_OK: at least one of the ways in @p out is there; else fail() said why not. */
    ring_status (*share)(const accelerator *a, void *base, size_t bytes, accelerator_share *out);

    /** Returns when folds that are asked for later see what adapters had written to that memory
     *  before, as the host knows from them. NULL: they see it anyway. */
    ring_status (*flush)(const accelerator *a, void *at, size_t bytes);

    /** Where it is on the PCI bus; stays as it is. NULL: nowhere, and near to every adapter. */
    const pci_place *(*place)(const accelerator *a);
};

/** Copies bytes, to or from memory of the accelerator. */
static inline ring_status accelerator_copy(const accelerator *a, void *dst, const void *src,
                                           size_t bytes, ticket *over)
{
    const kernel_operand out = {.data = dst}, in = {.data = (void *)(uintptr_t)src};
    return a->fold(a, &out, 1, &in, 1, bytes, RING_UINT8, RING_SUM, 0, over);
}

#endif
