/* SPDX-License-Identifier: Apache-2.0
 *
 * far: memory that only an accelerator reaches. Its addresses are reserved without access, so that
 * any load or store of the host faults; the accelerator is a thread that has its bytes elsewhere.
 * It does what it is asked in order, and late.
 *
 * Adapters see another copy of the bytes, in a file that stands for a dma-buf. A fold's
 * result is in both at once; bytes that adapters write reach the accelerator's copy only by a flush
 * of just those bytes.
 */
#ifndef TEST_DOUBLES_FAR_H
#define TEST_DOUBLES_FAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAR_API __attribute__((visibility("default")))

/** Registered with the library. Ends the process if there is none. */
FAR_API void *far_alloc(size_t bytes);
/** Of another accelerator, which shares nothing with adapters. */
FAR_API void *far_alloc_elsewhere(size_t bytes);
FAR_API void far_free(void *memory);
/** Of the first accelerator, and not registered. @param at  NULL: anywhere; else where an
 *  allocation was that was freed. */
FAR_API void *far_alloc_unknown(size_t bytes, void *at);
FAR_API void far_free_unknown(void *memory);
/** Access to far memory, for tests. */
FAR_API void far_write(void *memory, const void *from, size_t bytes);
FAR_API void far_read(void *to, const void *memory, size_t bytes);

/** From now on every fold comes so much later. */
FAR_API void far_delay(double seconds);

/** By which ways it is shared with adapters from now on: FAR_DMABUF unless told; 0: by none, which
 *  fails. Memory that an adapter has already stays as it is. */
enum { FAR_DMABUF = 1, FAR_BY_ADDRESS = 2 };
FAR_API void far_share_by(unsigned ways);
/** Where the accelerator is on the PCI bus, as in pci_place; NULL, as unless told: nowhere. */
FAR_API void far_place(const char *path);
/** From now on every flush fails, or does not. */
FAR_API void far_fail_flushes(bool fail);
/** From now on the device has that error, and does no fold any more; NULL: it has none. */
FAR_API void far_break(const char *error);
/** Far memory's address for adapters, for a double of a driver that knows its addresses. */
FAR_API void *far_at_adapters(void *memory);

/** Streams of the first accelerator, for ring_call.stream. A thread does what is asked, in order;
 *  the host's memory is the test's again once the stream has come past it. */
typedef struct far_stream far_stream;
FAR_API far_stream *far_stream_create(void);
/** Once all that was asked is done. */
FAR_API void far_stream_destroy(far_stream *stream);
FAR_API void far_stream_synchronize(far_stream *stream);
FAR_API bool far_stream_is_idle(far_stream *stream);
FAR_API void far_stream_write(far_stream *stream, void *memory, const void *from, size_t bytes);
FAR_API void far_stream_read(far_stream *stream, void *to, void *memory, size_t bytes);
FAR_API void far_stream_delay(far_stream *stream, double seconds);
/** It waits there until far_stream_let_go() was called once more. */
FAR_API void far_stream_hold(far_stream *stream);
FAR_API void far_stream_let_go(far_stream *stream);

/** Between the two calls, requests to the stream are recorded and not executed. */
typedef struct far_graph far_graph;
FAR_API void far_capture_begin(far_stream *stream);
FAR_API far_graph *far_capture_end(far_stream *stream);
FAR_API void far_graph_replay(far_graph *graph, far_stream *stream);
/** Once its replays are over. */
FAR_API void far_graph_destroy(far_graph *graph);

typedef struct far_counts {
    uint64_t shares, flushes, flushed_bytes;
    uint64_t host_bytes; /* of operands of folds that lay in the host's memory */
} far_counts;
/** Since the process began. */
FAR_API void far_counters(far_counts *out);

#endif
