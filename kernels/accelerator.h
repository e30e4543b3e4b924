/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerator: a device that computes on memory which the host must not access, asynchronously and
 * in the order of the requests. The engine requests each fold of a call whose buffers are in such
 * memory, and progresses other work meanwhile.
 *
 * Network adapters may read and write its memory directly, if it shares that memory. Its streams
 * stop where a call was enqueued, until that call is complete (ring_call.stream).
 *
 * memory/accelerators.h lists a process's accelerators. Any thread may call all functions.
 */
#ifndef RING_ACCELERATOR_H
#define RING_ACCELERATOR_H

#include "kernels.h"
#include "pci_distance.h"
#include "ticket.h"

/** How adapters access a range of an accelerator's memory. */
typedef struct accelerator_share {
    int dmabuf;      /* descriptor, closed by the caller; -1: none */
    uint64_t offset; /* of the range in the dma-buf */
    bool by_address; /* adapters' drivers know its addresses as they know those of
                        the host's memory                                        */
} accelerator_share;

typedef struct accelerator accelerator;

/** A place in a user's stream where the stream waits for resume(). The accelerator owns it; the
 *  engine borrows it from stop() or start() to resume(). */
typedef struct accelerator_stop {
    ticket *reached; /* closed with RING_OK once all that was asked of the stream before is over.
                        The device may write it: then no waiter is woken, and the engine looks */
    /* The engine's: */
    const accelerator *by;
    _Atomic int holders;
    struct accelerator_stop *next;
    void *call;
} accelerator_stop;

/** The allocation that contains an address. */
typedef struct accelerator_allocation {
    void *base;
    size_t bytes;
    uint64_t id; /* unique among this accelerator's allocations, also at a reused address */
} accelerator_allocation;

struct accelerator {
    const char *name;

    /** kernel_fold(), asynchronously. Operands lie in the accelerator's memory or in the host's,
     *  and must not change until the fold is complete.
     *  @param over  opened here, closed on completion with ticket_wake_all() after it, from any
     *  thread; NULL: the next fold's ticket covers this one. */
    ring_status (*fold)(const accelerator *a, const kernel_operand *outs, int out_count,
                        const kernel_operand *ins, int in_count, size_t count, ring_dtype dtype,
                        ring_op op, int divisor, ticket *over);

    /** Waits until all requests are complete, or will access no memory any more. */
    void (*settle)(const accelerator *a);

    /** Prepares memory for adapters. A fold's results are visible to them once the fold is
     *  complete; their writes are visible to folds after flush(). Any thread. NULL: adapters cannot
     *  access the memory, and the next two functions are unused.
     *  @return RING_OK: @p out has at least one way; else fail() gave the reason. */
    ring_status (*share)(const accelerator *a, void *base, size_t bytes, accelerator_share *out);

    /** Makes adapters' writes that the host knows of visible to later folds. NULL: they always
     *  are. */
    ring_status (*flush)(const accelerator *a, void *at, size_t bytes);

    /** The place on the PCI bus; constant. NULL: none, near to every adapter. */
    const pci_place *(*place)(const accelerator *a);

    /** Whether @p at is memory of the accelerator. Called for each buffer that is not registered,
     *  so it is quick. NULL: only registered memory is known.
     *  @param[out] out  an allocation that covers as many of the @p bytes as belong to it; 0 bytes:
     *  none.
     *  @return RING_OK, or fail() gave the reason. */
    ring_status (*owns)(const accelerator *a, const void *at, size_t bytes,
                        accelerator_allocation *out);

    /** Is it a stream of this accelerator? NULL: no streams, and no next four functions. */
    ring_status (*owns_stream)(const accelerator *a, void *stream, bool *yes);

    /** Calls on its streams may have buffers in the host's memory. */
    bool orders_host;

    /** Enqueues on the stream: close `reached`, then wait for resume(). May block while the stream
     *  is full; the engine holds no lock.
     *  @return RING_OK; else fail() gave the reason, and nothing remains enqueued. */
    ring_status (*stop)(const accelerator *a, void *stream, accelerator_stop **out);

    /** Lets the stream continue, also if it has not reached the stop yet, and gives the stop back.
     *  Calls no driver and does not block. */
    void (*resume)(accelerator_stop *stop);

    /** @param[out] captured  work on the stream is recorded now, and executed at each replay of the
     *  record. NULL: capturing is not supported. */
    ring_status (*captures)(const accelerator *a, void *stream, bool *captured);

    /** Adds a stop to the record. Whenever a replay reaches it, start(context, stop) is called,
     *  with `reached` closed; the replay waits for resume(), and the next replay of the same record
     *  comes later. forget(context) is called once, when no replay is under way or will come. Both
     *  must return soon, and call no function of the accelerator but resume().
     *  @return as stop(); RING_ERR_UNSUPPORTED: this stream's record cannot have a stop. */
    ring_status (*capture)(const accelerator *a, void *stream,
                           void (*start)(void *context, accelerator_stop *stop),
                           void (*forget)(void *context), void *context);

    /** @return RING_OK; else fail() gave the device's error: earlier requests may never complete,
     *  and settle() returns soon. Called often. NULL: no errors are reported. */
    ring_status (*health)(const accelerator *a);

    /** Runs programs (accelerator_programs.h); NULL: the host drives all calls. */
    const struct accelerator_programs *programs;
};

/** The accelerator of the calling thread: CUDA's current device, if the process has started CUDA.
 *  It is opened when first found, and stays.
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
