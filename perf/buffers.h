/* SPDX-License-Identifier: Apache-2.0
 *
 * buffers: allocates a rank's input and output with guards around them, and checks one call: every
 * output element, the input elements that must be unchanged, and the guards.
 */
#ifndef PERF_BUFFERS_H
#define PERF_BUFFERS_H

#include "expected.h"
#include "perf_gpu.h"
#include "perf_options.h"

#define PERF_GUARD 4096 /* bytes of a guard: a page, so that the data after it is aligned */

/** One allocation: a guard, room for data, and a guard. */
typedef struct perf_buffer {
    unsigned char *base;
    unsigned char *view; /* host memory of the same size with the same contents: base itself, or a
                            copy of a GPU's memory */
    size_t bytes;        /* largest number of bytes of data */
    perf_memory memory;
} perf_buffer;

typedef struct perf_buffers {
    perf_buffer src, dst;
    const perf_gpu *gpu;
} perf_buffers;

/** Allocates buffers for calls whose larger operand has up to @p bytes.
 *  @param gpu  the GPU for PERF_GPU memory, else NULL; perf_gpu_error() describes its failures.
 *  @return RING_OK, RING_ERR_MEMORY, or a failure of the GPU. */
ring_status perf_buffers_open(perf_buffers *buffers, size_t bytes, perf_memory memory,
                              const perf_gpu *gpu);
void perf_buffers_close(perf_buffers *buffers);

/** The operands of a call: addresses in the buffers. */
typedef struct perf_place {
    unsigned char *src, *dst;
} perf_place;

/** @return the operands of a call. @param unalign  elements by which they are moved (-u). */
perf_place perf_place_of(const perf_buffers *buffers, const perf_case *c, int unalign);

/** Writes the rank's input for a call. @param repetition  each number gives other values.
 *  @return RING_OK, or the failure of a copy to the GPU. */
ring_status perf_rewrite(const perf_buffers *buffers, const perf_case *c, int unalign,
                         uint32_t repetition);

/** Prepares a call that is checked: fills the guards and the output with a pattern, and writes the
 *  input. @return as perf_rewrite(). */
ring_status perf_prepare_check(const perf_buffers *buffers, const perf_case *c, int unalign,
                               uint32_t repetition);

typedef struct perf_wrong {
    uint64_t elements;      /* output elements that are wrong, and input elements that changed */
    uint64_t out_of_bounds; /* guard bytes that changed */
} perf_wrong;

/** Checks the buffers after a call that was prepared by perf_prepare_check() with the same
 *  arguments.
 *  @return RING_OK, or the failure of a copy from the GPU. */
ring_status perf_check(const perf_buffers *buffers, const perf_case *c, int unalign,
                       uint32_t repetition, perf_wrong *out);

#endif
