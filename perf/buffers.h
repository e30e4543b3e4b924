/* SPDX-License-Identifier: Apache-2.0
 *
 * buffers: a rank's input and output with guards around them, and the check of one call:
 * every output element, the input where it must be unchanged, and the guards.
 */
#ifndef PERF_BUFFERS_H
#define PERF_BUFFERS_H

#include "expected.h"
#include "perf_gpu.h"
#include "perf_options.h"

#define PERF_GUARD 4096 /* bytes before and after a call's: a page, so that data is aligned */

/** One allocation: guard, room for data, guard. */
typedef struct perf_buffer {
    unsigned char *base;
    unsigned char *view; /* as many bytes that the host reads and writes: base itself, unless that
                            is memory of a GPU */
    size_t bytes;        /* of data at most */
    perf_memory memory;
} perf_buffer;

typedef struct perf_buffers {
    perf_buffer src, dst;
    const perf_gpu *gpu;
} perf_buffers;

/** Room for calls of up to @p bytes in the larger buffer.
 *  @param gpu  the GPU of PERF_GPU memory, else NULL; perf_gpu_error() states its failures.
 *  @return RING_OK, RING_ERR_MEMORY. */
ring_status perf_buffers_open(perf_buffers *buffers, size_t bytes, perf_memory memory,
                              const perf_gpu *gpu);
void perf_buffers_close(perf_buffers *buffers);

/** A call's operands inside the buffers, as the call is given them. */
typedef struct perf_place {
    unsigned char *src, *dst;
} perf_place;
perf_place perf_place_of(const perf_buffers *buffers, const perf_case *c, int unalign);

/** Rewrites the rank's input. @return RING_OK, or a failed copy to the GPU. */
ring_status perf_rewrite(const perf_buffers *buffers, const perf_case *c, int unalign,
                         uint32_t repetition);

/** Before a checked call: guards and output get a pattern, then the input is rewritten. */
ring_status perf_prepare_check(const perf_buffers *buffers, const perf_case *c, int unalign,
                               uint32_t repetition);

typedef struct perf_wrong {
    uint64_t elements;      /* outputs that differ, inputs that changed */
    uint64_t out_of_bounds; /* guard bytes that changed */
} perf_wrong;

/** After it. */
ring_status perf_check(const perf_buffers *buffers, const perf_case *c, int unalign,
                       uint32_t repetition, perf_wrong *out);

#endif
