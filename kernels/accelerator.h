/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerator: defines the interface to a device, such as a GPU, that computes on memory which the
 * host must not access. The device executes requests asynchronously and in order. The engine
 * requests each fold of a call whose buffers are in the device's memory, and makes progress on
 * other calls meanwhile.
 *
 * Network adapters can read and write the device's memory directly if share() allows it. A stream
 * stops at the point where a call was enqueued on it, until that call is complete
 * (ring_call.stream).
 *
 * memory/accelerators.h lists a process's accelerators. All functions are thread-safe.
 */
#ifndef RING_ACCELERATOR_H
#define RING_ACCELERATOR_H

#include "kernels.h"
#include "pci_distance.h"
#include "ticket.h"

/** How adapters access a range of an accelerator's memory. */
typedef struct accelerator_share {
    int dmabuf;      /* descriptor, which the caller closes; -1 if there is no dma-buf   */
    uint64_t offset; /* of the range in the dma-buf, in bytes                            */
    bool by_address; /* adapters' drivers accept its addresses like those of host memory */
} accelerator_share;

typedef struct accelerator accelerator;

/** A place in a user's stream where the stream waits for resume(). The accelerator owns it; the
 *  engine borrows it from stop() until resume(). */
typedef struct accelerator_stop {
    ticket *reached; /* closed with RING_OK when all earlier work of the stream is complete. The
                        device may close it without waking waiters, so the engine polls it     */
    /* Only the engine uses the following members: */
    const accelerator *by;
    bool is_mark; /* of the default stream, which does not wait */
    _Atomic int holders;
} accelerator_stop;

/** The allocation that contains an address. */
typedef struct accelerator_allocation {
    void *base;
    size_t bytes;
    uint64_t id; /* differs from that of an earlier allocation at the same address */
} accelerator_allocation;

struct accelerator {
    const char *name;

    /** Performs kernel_fold() asynchronously, in the order of the requests. Operands are in the
     *  accelerator's memory (on_device) or in the host's, and must not change until the fold is
     *  complete. May wait until earlier folds have left enough memory for its host operands.
     *  @param over  opened here; reap() closes it after the fold is complete. NULL: the next fold's
     *  ticket covers this one. */
    ring_status (*fold)(const accelerator *a, const kernel_operand *outs, int out_count,
                        const kernel_operand *ins, int in_count, size_t count, ring_dtype dtype,
                        ring_op op, int divisor, ticket *over);

    /** Most bytes of the host operands of one fold; 0: there is no limit. */
    size_t staging;

    /** Closes the tickets of folds that are complete. No thread is woken by the end of a fold, so
     *  the engine calls this each time it looks at a ticket. It does not block and makes no call
     *  into the driver. */
    void (*reap)(const accelerator *a);

    /** Waits until all requests are complete or will no longer access any memory. */
    void (*settle)(const accelerator *a);

    /** Prepares memory for access by network adapters. Adapters read a fold's results once the fold
     *  is complete; folds read adapters' writes after flush(). Any thread may call it. NULL:
     *  adapters cannot access the memory, and the next two functions are unused.
     *  @return RING_OK if @p out offers at least one way of access; otherwise the reason was passed
     *  to fail(). */
    ring_status (*share)(const accelerator *a, void *base, size_t bytes, accelerator_share *out);

    /** Makes those writes of adapters whose completion the host has received visible to later
     * folds. NULL: they are always visible. */
    ring_status (*flush)(const accelerator *a, void *at, size_t bytes);

    /** @return the device's place on the PCI bus, which never changes. NULL: it has no such place,
     *  and counts as near to every adapter. */
    const pci_place *(*place)(const accelerator *a);

    /** Checks whether @p at is memory of the accelerator. It is called for each buffer that is not
     *  registered, so it must be quick. NULL: only registered memory counts as the accelerator's.
     *  @param[out] out  the allocation that contains @p at; 0 bytes if the memory is not the
     *  accelerator's.
     *  @return RING_OK; otherwise the reason was passed to fail(). */
    ring_status (*owns)(const accelerator *a, const void *at, size_t bytes,
                        accelerator_allocation *out);

    /** Checks whether a stream belongs to this accelerator. NULL: it has no streams, and the next
     *  four functions are absent. */
    ring_status (*owns_stream)(const accelerator *a, void *stream, bool *yes);

    /** True if calls on its streams may have buffers in the host's memory. */
    bool orders_host;

    /** Enqueues a stop on the stream. When the stream reaches the stop, it closes `reached` and
     *  waits for resume(). May block while the stream's queue is full, so the caller holds no lock.
     *  @return RING_OK; otherwise the reason was passed to fail(), and nothing is enqueued. */
    ring_status (*stop)(const accelerator *a, void *stream, accelerator_stop **out);

    /** Marks the end of all work that the device's default stream has now, for calls without a
     *  stream: programs prepare buffers by plain copies, which may end after they return. The mark
     *  is a stop at which the stream does not wait; resume() returns it. May block like stop().
     *  NULL: there is no default stream.
     *  @param[out] out  NULL if the stream has no work. @return as stop(). */
    ring_status (*mark_default)(const accelerator *a, accelerator_stop **out);

    /** Lets the stream continue, even if it has not reached the stop yet, and returns the stop to
     *  the accelerator. Does not block, and makes no call into the driver. */
    void (*resume)(accelerator_stop *stop);

    /** Checks whether the stream is being captured. NULL: capturing is not supported.
     *  @param[out] captured  work on the stream is being recorded in a graph instead of executed;
     *  each replay of the graph executes it. */
    ring_status (*captures)(const accelerator *a, void *stream, bool *captured);

    /** Checks the device for errors. It is called often. NULL: no errors are reported.
     *  @return RING_OK; otherwise the device's error was passed to fail(), earlier requests may
     *  never complete, and settle() returns soon. */
    ring_status (*health)(const accelerator *a);

    /** Runs whole programs (accelerator_programs.h). NULL: the host drives all calls. */
    const struct accelerator_programs *programs;
};

/** Finds the accelerator of the calling thread: CUDA's current device if the process has
 *  initialised CUDA. It is opened when it is first found, and stays open.
 *  @param[out] out  NULL if there is no accelerator.
 *  @return RING_OK, or the status of the failure that makes it unusable. */
ring_status accelerator_current(const accelerator **out);

/** Copies bytes from memory of the accelerator to the host's, asynchronously, as fold() does. */
static inline ring_status accelerator_copy_to_host(const accelerator *a, void *dst, const void *src,
                                                   size_t bytes, ticket *over)
{
    const kernel_operand out = {.data = dst};
    const kernel_operand in = {.data = (void *)(uintptr_t)src, .on_device = true};
    return a->fold(a, &out, 1, &in, 1, bytes, RING_UINT8, RING_SUM, 0, over);
}

#endif
