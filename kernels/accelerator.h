/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerator: what computes on memory that the host must not touch, on its own and in the order in
 * which it is asked. The engine asks it for each fold of a call whose buffers are such memory, and
 * goes on with something else meanwhile.
 */
#ifndef RING_ACCELERATOR_H
#define RING_ACCELERATOR_H

#include "kernels.h"
#include "ticket.h"

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
};

/** Copies bytes, to or from memory of the accelerator. */
static inline ring_status accelerator_copy(const accelerator *a, void *dst, const void *src,
                                           size_t bytes, ticket *over)
{
    const kernel_operand out = {.data = dst}, in = {.data = (void *)(uintptr_t)src};
    return a->fold(a, &out, 1, &in, 1, bytes, RING_UINT8, RING_SUM, 0, over);
}

#endif
