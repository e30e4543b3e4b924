/* SPDX-License-Identifier: Apache-2.0
 *
 * far: simulates memory that only an accelerator can access. Its addresses are reserved without
 * access, so that any load or store by the host faults; the accelerator is a thread that has the
 * bytes elsewhere. It executes requests in order, and late.
 *
 * Adapters see another copy of the bytes, in a file that stands for a dma-buf. The result of a fold
 * is in both copies at once; bytes that adapters write reach the accelerator's copy only by a flush
 * of exactly those bytes.
 */
#ifndef TEST_DOUBLES_FAR_H
#define TEST_DOUBLES_FAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAR_API __attribute__((visibility("default")))

/** Allocates far memory that is registered with the library; ends the process if that fails. */
FAR_API void *far_alloc(size_t bytes);
/** Allocates memory of another accelerator, which shares nothing with adapters. */
FAR_API void *far_alloc_elsewhere(size_t bytes);
FAR_API void far_free(void *memory);
/** Allocates memory of the first accelerator that is not registered. @param at  NULL: anywhere;
 *  otherwise the address of a freed allocation. */
FAR_API void *far_alloc_unknown(size_t bytes, void *at);
FAR_API void far_free_unknown(void *memory);
/** Access to far memory, for tests. */
FAR_API void far_write(void *memory, const void *from, size_t bytes);
FAR_API void far_read(void *to, const void *memory, size_t bytes);

/** Delays every fold from now on. */
FAR_API void far_delay(double seconds);

/** Sets how memory is shared with adapters from now on. The default is FAR_DMABUF; with 0 sharing
 *  fails. Memory that is already registered with an adapter is not changed. */
enum { FAR_DMABUF = 1, FAR_BY_ADDRESS = 2 };
FAR_API void far_share_by(unsigned ways);
/** Sets the accelerator's place on the PCI bus, as in pci_place. NULL, the default: unknown. */
FAR_API void far_place(const char *path);
/** Sets whether every flush fails from now on. */
FAR_API void far_fail_flushes(bool fail);
/** Sets an error of the device, which then executes no more folds; NULL clears it. */
FAR_API void far_break(const char *error);
/** @return the address of far memory for adapters, for a double of a driver that knows it. */
FAR_API void *far_at_adapters(void *memory);

/** A stream of the first accelerator, for ring_call.stream. A thread executes its requests in
 * order; a request uses host memory until it has been executed. */
typedef struct far_stream far_stream;
FAR_API far_stream *far_stream_create(void);
/** Waits until all requests have been executed, and frees the stream. */
FAR_API void far_stream_destroy(far_stream *stream);
FAR_API void far_stream_synchronize(far_stream *stream);
FAR_API bool far_stream_is_idle(far_stream *stream);
FAR_API void far_stream_write(far_stream *stream, void *memory, const void *from, size_t bytes);
FAR_API void far_stream_read(far_stream *stream, void *to, void *memory, size_t bytes);
FAR_API void far_stream_delay(far_stream *stream, double seconds);
/** Makes the stream wait at this point for another call of far_stream_let_go(). */
FAR_API void far_stream_hold(far_stream *stream);
FAR_API void far_stream_let_go(far_stream *stream);

/** Between the two calls the stream is being captured: the library must refuse calls on it, because
 *  the host drives them. Requests are executed nevertheless. */
FAR_API void far_capture_begin(far_stream *stream);
FAR_API void far_capture_end(far_stream *stream);

typedef struct far_counts {
    uint64_t shares, flushes, flushed_bytes;
    uint64_t host_bytes; /* bytes of fold operands in host memory */
} far_counts;
/** Reads the counters, which count from the start of the process. */
FAR_API void far_counters(far_counts *out);

#endif
