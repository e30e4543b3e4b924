/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerator: what computes on memory that the host must not touch, on its own and in the order in
 * which it is asked. The engine asks it for each fold of a call whose buffers are such memory, and
 * goes on with something else meanwhile.
 *
 * Adapters of a network may read and write its memory themselves, if it shares that. Its streams
 * stop where a call was asked for, until that call is over (ring_call.stream).
 *
 * Those of a process are listed in memory/accelerators.h. All functions may be called by any
 * thread.
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

/** A place in a stream of the user's at which the stream waits for resume(). It is the
 *  accelerator's, from stop() or start() on lent to the engine until resume(). */
typedef struct accelerator_stop {
    ticket *reached; /* closed with RING_OK once all that was asked of the stream before is over.
                        The device may write it: then no waiter is woken, and the engine looks */
    /* The engine's: */
    const accelerator *by;
    _Atomic int holders;
    struct accelerator_stop *next;
    void *call;
} accelerator_stop;

/** The allocation that memory lies in. */
typedef struct accelerator_allocation {
    void *base;
    size_t bytes;
    uint64_t id; /* of no other allocation of this accelerator, also at the same address */
} accelerator_allocation;

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

    /** Is the byte at @p at memory of it? Asked for each buffer that nobody registered, so it is
     *  quick. NULL: only what is registered is known to be.
     *  @param[out] out  an allocation that has as many of the @p bytes as are its memory; of 0
     *              bytes: it is not.
     *  @return RING_OK, or fail() told why nobody knows. */
    ring_status (*owns)(const accelerator *a, const void *at, size_t bytes,
                        accelerator_allocation *out);

    /** Is it a stream of this accelerator? NULL: it has none, and the next four mean nothing. */
    ring_status (*owns_stream)(const accelerator *a, void *stream, bool *yes);

    /** Calls behind its streams may have buffers of the host's memory. */
    bool orders_host;

    /** Adds to what the stream is to do: close `reached`, then wait for resume(). May block while
     *  the stream has no room; the engine holds no lock.
     *  @return RING_OK; else fail() said why, and the stream has nothing more to do. */
    ring_status (*stop)(const accelerator *a, void *stream, accelerator_stop **out);

    /** Has the stream go on, also if it has not come to the stop yet, and gives the stop back.
     *  Calls no driver and does not block. */
    void (*resume)(accelerator_stop *stop);

    /** @param[out] captured  what is asked of the stream is not done now but recorded, and done
     *  each time the record is replayed. NULL: that never is. */
    ring_status (*captures)(const accelerator *a, void *stream, bool *captured);

    /** Adds a stop to what is recorded. Each time a replay has come to it, start(context, stop) is
     *  called, with `reached` closed; the replay waits for resume(), and the next one of the same
     *  record comes later. forget(context) is called once, when there will be no more replays and
     *  none is under way. Both return soon, and call no function of the accelerator but resume().
     *  @return as stop(); RING_ERR_UNSUPPORTED: this stream's record cannot have it. */
    ring_status (*capture)(const accelerator *a, void *stream,
                           void (*start)(void *context, accelerator_stop *stop),
                           void (*forget)(void *context), void *context);

    /** @return RING_OK; else fail() tells the device's error, after which what was asked of it may
     *  never be over. settle() returns soon then. Asked often. NULL: it has no errors. */
    ring_status (*health)(const accelerator *a);

    /** Programs that it runs itself (accelerator_programs.h); NULL: the host drives all calls. */
    const struct accelerator_programs *programs;
};

/** The accelerator that the calling thread uses: CUDA's current device, where the process has
 * started CUDA. It is opened when it is first found, and stays.
 *  @param[out] out  NULL: there is none.
 *  @return RING_OK, or why it cannot be used. */
ring_status accelerator_current(const accelerator **out);

/** Copies bytes, to or from memory of the accelerator. */
static inline ring_status accelerator_copy(const accelerator *a, void *dst, const void *src,
                                           size_t bytes, ticket *over)
{
    const kernel_operand out = {.data = dst}, in = {.data = (void *)(uintptr_t)src};
    return a->fold(a, &out, 1, &in, 1, bytes, RING_UINT8, RING_SUM, 0, over);
}

#endif
