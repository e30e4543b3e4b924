/* SPDX-License-Identifier: Apache-2.0
 *
 * buffers: allocates, fills and checks the buffers of a rank. Before a checked call, the output and
 * the guard pages before and after the operands are filled with a pattern. So a stray write changes
 * a guard, and a missing write leaves a wrong value.
 *
 * Two buffers of 2^k bytes are 2^k bytes and three guards apart, which is an odd number of pages.
 * If their distance were a power of two, they would alias in the CPU's caches.
 *
 * A buffer on a GPU has a view: host memory of the same size, in which values are written and
 * checked. They are copied from the view to the GPU and back.
 */
#include "buffers.h"
#include "try.h"

#include <stdlib.h>
#include <string.h>

#define PATTERN 0xa5

static ring_status buffer_allocate(perf_buffer *buffer, size_t total)
{
    void *base = NULL, *view = NULL;
    ring_status status = RING_OK;
    if (buffer->memory == PERF_GPU)
        status = perf_gpu_alloc(total, &base, &view);
    else if (buffer->memory == PERF_SHARED)
        status = ring_mem_alloc(&base, total);
    else if (posix_memalign(&base, 4096, total) != 0)
        status = RING_ERR_MEMORY;
    buffer->base = base;
    buffer->view = buffer->memory == PERF_GPU ? view : base;
    return status;
}

static ring_status buffer_open(perf_buffer *buffer, size_t bytes, perf_memory memory)
{
    const size_t total = bytes + (size_t)3 * PERF_GUARD; /* the third is room for --unalign */
    *buffer = (perf_buffer){.bytes = bytes, .memory = memory};
    const ring_status status = buffer_allocate(buffer, total);
    if (status == RING_OK)
        memset(buffer->view, PATTERN, total); /* touches every page before anything is timed */
    return status;
}

static void buffer_close(perf_buffer *buffer)
{
    if (buffer->memory == PERF_GPU)
        perf_gpu_free(buffer->base, buffer->view);
    else if (buffer->memory == PERF_SHARED)
        ring_mem_free(buffer->base);
    else
        free(buffer->base);
    buffer->base = buffer->view = NULL;
}

ring_status perf_buffers_open(perf_buffers *buffers, size_t bytes, perf_memory memory,
                              const perf_gpu *gpu)
{
    *buffers = (perf_buffers){.gpu = gpu};
    const ring_status status = buffer_open(&buffers->src, bytes, memory);
    return status == RING_OK ? buffer_open(&buffers->dst, bytes, memory) : status;
}

void perf_buffers_close(perf_buffers *buffers)
{
    buffer_close(&buffers->src);
    buffer_close(&buffers->dst);
}

static perf_place place_in(unsigned char *src, unsigned char *dst, const perf_case *c, int unalign)
{
    const size_t size = ring_dtype_size(c->dtype), shift = PERF_GUARD + (size_t)unalign * size;
    if (!c->in_place)
        return (perf_place){src + shift, dst + shift};
    return (perf_place){dst + shift + perf_src_in_place(c) * size,
                        dst + shift + perf_dst_in_place(c) * size};
}

perf_place perf_place_of(const perf_buffers *buffers, const perf_case *c, int unalign)
{
    return place_in(buffers->src.base, buffers->dst.base, c, unalign);
}

/* @return the operands of the call in the views of the buffers. */
static perf_place view_of(const perf_buffers *buffers, const perf_case *c, int unalign)
{
    return place_in(buffers->src.view, buffers->dst.view, c, unalign);
}

static perf_oracle oracle_of(const perf_case *c, uint32_t repetition)
{
    return (perf_oracle){c->dtype, c->op, c->ranks, repetition};
}

static void fill_input(const perf_case *c, perf_place place, uint32_t repetition)
{
    const perf_oracle oracle = oracle_of(c, repetition);
    perf_oracle_fill(&oracle, c->rank, 0, perf_src_elements(c), place.src);
}

ring_status perf_rewrite(const perf_buffers *buffers, const perf_case *c, int unalign,
                         uint32_t repetition)
{
    const perf_place view = view_of(buffers, c, unalign);
    fill_input(c, view, repetition);
    return buffers->gpu == NULL
               ? RING_OK
               : perf_gpu_put(buffers->gpu, perf_place_of(buffers, c, unalign).src, view.src,
                              perf_src_elements(c) * ring_dtype_size(c->dtype));
}

/* The part of a buffer's view that a call uses. The guard before it begins at base, and the guard
 * after it at data + used. */
typedef struct area {
    unsigned char *base, *data;
    size_t used; /* bytes */
} area;

static area src_area(const perf_buffers *buffers, const perf_case *c, perf_place place)
{
    if (c->in_place)
        return (area){buffers->src.view, buffers->src.view + PERF_GUARD, 0};
    const size_t used = perf_src_elements(c) * ring_dtype_size(c->dtype);
    return (area){buffers->src.view, place.src, used};
}

static area dst_area(const perf_buffers *buffers, const perf_case *c, perf_place place)
{
    if (c->in_place) /* both operands are in this buffer, one of them at its start */
        return (area){buffers->dst.view, place.src < place.dst ? place.src : place.dst,
                      perf_case_bytes(c)};
    const size_t used = perf_dst_elements(c) * ring_dtype_size(c->dtype);
    return (area){buffers->dst.view, place.dst, used};
}

static size_t area_bytes(area a)
{
    return (size_t)(a.data - a.base) + a.used + PERF_GUARD;
}

static void paint(area a)
{
    memset(a.base, PATTERN, area_bytes(a));
}

/* Copies both areas to the GPU, or from the GPU; does nothing for buffers of the host. */
static ring_status move_areas(const perf_buffers *buffers, area src, area dst, bool to_gpu)
{
    const perf_gpu *gpu = buffers->gpu;
    unsigned char *in = buffers->src.base, *out = buffers->dst.base;
    if (gpu == NULL)
        return RING_OK;
    RING_TRY(to_gpu ? perf_gpu_put(gpu, in, src.base, area_bytes(src))
                    : perf_gpu_get(gpu, src.base, in, area_bytes(src)));
    return to_gpu ? perf_gpu_put(gpu, out, dst.base, area_bytes(dst))
                  : perf_gpu_get(gpu, dst.base, out, area_bytes(dst));
}

ring_status perf_prepare_check(const perf_buffers *buffers, const perf_case *c, int unalign,
                               uint32_t repetition)
{
    const perf_place view = view_of(buffers, c, unalign);
    const area src = src_area(buffers, c, view), dst = dst_area(buffers, c, view);
    paint(src);
    paint(dst);
    fill_input(c, view, repetition);
    return move_areas(buffers, src, dst, true);
}

/* ---- After the call ---- */

static uint64_t changed_bytes(const unsigned char *from, const unsigned char *to)
{
    uint64_t changed = 0;
    for (; from < to; from++)
        changed += *from != PATTERN;
    return changed;
}

static uint64_t changed_around(area a)
{
    const unsigned char *end = a.data + a.used;
    return changed_bytes(a.base, a.data) + changed_bytes(end, end + PERF_GUARD);
}

/* @return how many elements of one block of the output are wrong. If the rank receives nothing, the
 * block must be unchanged: it has the pattern, or in place the rank's own input. */
static uint64_t wrong_block(const perf_case *c, const perf_oracle *oracle, int block,
                            const unsigned char *data)
{
    const perf_expect expect = c->collective->expect(c, block);
    if (expect.ranks == 0 && c->in_place && (!c->collective->dst_blocks || block == c->rank))
        return perf_oracle_check_copy(oracle, c->rank, 0, c->count, data);
    if (expect.ranks == 0) {
        const size_t size = ring_dtype_size(c->dtype);
        uint64_t changed = 0;
        for (size_t i = 0; i < c->count; i++)
            changed += changed_bytes(data + i * size, data + (i + 1) * size) != 0;
        return changed;
    }
    const perf_oracle some = {oracle->dtype, oracle->op, expect.ranks, oracle->repetition};
    if (c->collective->reduces)
        return perf_oracle_check_reduced(&some, expect.first_index, c->count, data);
    return perf_oracle_check_copy(oracle, expect.first_rank, expect.first_index, c->count, data);
}

/* @return how many input elements have changed. Out of place, this counts all of them. In place, it
 * counts only those that are not part of the output: if the input has blocks, the blocks of the
 * other ranks. */
static uint64_t changed_input(const perf_case *c, const perf_oracle *oracle, perf_place place)
{
    const size_t elements = perf_src_elements(c), own = perf_dst_in_place(c);
    if (!c->in_place)
        return perf_oracle_check_copy(oracle, c->rank, 0, elements, place.src);
    if (!c->collective->src_blocks)
        return 0;
    const size_t after = own + c->count, size = ring_dtype_size(c->dtype);
    return perf_oracle_check_copy(oracle, c->rank, 0, own, place.src) +
           perf_oracle_check_copy(oracle, c->rank, after, elements - after,
                                  place.src + after * size);
}

ring_status perf_check(const perf_buffers *buffers, const perf_case *c, int unalign,
                       uint32_t repetition, perf_wrong *out)
{
    const perf_oracle oracle = oracle_of(c, repetition);
    const perf_place view = view_of(buffers, c, unalign);
    const area src = src_area(buffers, c, view), dst = dst_area(buffers, c, view);
    const size_t block_bytes = c->count * ring_dtype_size(c->dtype);
    const int blocks = c->collective->dst_blocks ? c->ranks : 1;
    RING_TRY(move_areas(buffers, src, dst, false));
    uint64_t wrong = changed_input(c, &oracle, view);
    for (int block = 0; block < blocks; block++)
        wrong += wrong_block(c, &oracle, block, view.dst + (size_t)block * block_bytes);
    *out = (perf_wrong){wrong, changed_around(src) + changed_around(dst)};
    return RING_OK;
}
