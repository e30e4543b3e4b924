/* SPDX-License-Identifier: Apache-2.0
 *
 * buffers: the page before and the page after the bytes of a call hold a pattern, and so does
 * an output before the call: a stray write is counted, and a missing one is a wrong value.
 *
 * Two buffers of 2^k bytes lie 2^k plus three guards apart, an odd number of pages: at a
 * power of two they would alias in the CPU's caches.
 */
#include "buffers.h"

#include <stdlib.h>
#include <string.h>

#define PATTERN 0xa5

static ring_status buffer_open(perf_buffer *buffer, size_t bytes, perf_memory memory)
{
    const size_t total = bytes + (size_t)3 * PERF_GUARD; /* the third: room for --unalign */
    void *base = NULL;
    *buffer = (perf_buffer){.bytes = bytes, .memory = memory};
    if (memory == PERF_SHARED) {
        const ring_status status = ring_mem_alloc(&base, total);
        if (status != RING_OK)
            return status;
    } else if (posix_memalign(&base, 4096, total) != 0) {
        return RING_ERR_MEMORY;
    }
    buffer->base = base;
    memset(base, PATTERN, total); /* touches every page before anything is timed */
    return RING_OK;
}

static void buffer_close(perf_buffer *buffer)
{
    if (buffer->memory == PERF_SHARED)
        ring_mem_free(buffer->base);
    else
        free(buffer->base);
    buffer->base = NULL;
}

ring_status perf_buffers_open(perf_buffers *buffers, size_t bytes, perf_memory memory)
{
    *buffers = (perf_buffers){0};
    const ring_status status = buffer_open(&buffers->src, bytes, memory);
    return status == RING_OK ? buffer_open(&buffers->dst, bytes, memory) : status;
}

void perf_buffers_close(perf_buffers *buffers)
{
    buffer_close(&buffers->src);
    buffer_close(&buffers->dst);
}

perf_place perf_place_of(const perf_buffers *buffers, const perf_case *c, int unalign)
{
    const size_t size = ring_dtype_size(c->dtype), shift = PERF_GUARD + (size_t)unalign * size;
    if (!c->in_place)
        return (perf_place){buffers->src.base + shift, buffers->dst.base + shift};
    return (perf_place){buffers->dst.base + shift + perf_src_in_place(c) * size,
                        buffers->dst.base + shift + perf_dst_in_place(c) * size};
}

static perf_oracle oracle_of(const perf_case *c, uint32_t repetition)
{
    return (perf_oracle){c->dtype, c->op, c->ranks, repetition};
}

void perf_rewrite(const perf_case *c, perf_place place, uint32_t repetition)
{
    const perf_oracle oracle = oracle_of(c, repetition);
    perf_oracle_fill(&oracle, c->rank, 0, perf_src_elements(c), place.src);
}

/* The bytes of a buffer that a call uses. */
typedef struct area {
    unsigned char *base, *data;
    size_t used;
} area;

static area src_area(const perf_buffers *buffers, const perf_case *c, perf_place place)
{
    if (c->in_place)
        return (area){buffers->src.base, buffers->src.base + PERF_GUARD, 0};
    const size_t used = perf_src_elements(c) * ring_dtype_size(c->dtype);
    return (area){buffers->src.base, place.src, used};
}

static area dst_area(const perf_buffers *buffers, const perf_case *c, perf_place place)
{
    if (c->in_place) /* both operands lie in one buffer and one of them begins it */
        return (area){buffers->dst.base, place.src < place.dst ? place.src : place.dst,
                      perf_case_bytes(c)};
    const size_t used = perf_dst_elements(c) * ring_dtype_size(c->dtype);
    return (area){buffers->dst.base, place.dst, used};
}

static void paint(area a)
{
    memset(a.base, PATTERN, (size_t)(a.data - a.base) + a.used + PERF_GUARD);
}

void perf_prepare_check(const perf_buffers *buffers, const perf_case *c, int unalign,
                        uint32_t repetition)
{
    const perf_place place = perf_place_of(buffers, c, unalign);
    paint(src_area(buffers, c, place));
    paint(dst_area(buffers, c, place));
    perf_rewrite(c, place, repetition);
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

/* Elements with a byte that is not the pattern's. */
static uint64_t changed_elements(const unsigned char *data, size_t count, size_t size)
{
    uint64_t changed = 0;
    for (size_t i = 0; i < count; i++)
        changed += changed_bytes(data + i * size, data + (i + 1) * size) != 0;
    return changed;
}

static uint64_t wrong_block(const perf_case *c, const perf_oracle *oracle, int block,
                            const unsigned char *data)
{
    const perf_expect expect = c->collective->expect(c, block);
    if (expect.ranks == 0 && c->in_place && (!c->collective->dst_blocks || block == c->rank))
        return perf_oracle_check_copy(oracle, c->rank, 0, c->count, data);
    if (expect.ranks == 0)
        return changed_elements(data, c->count, ring_dtype_size(c->dtype));
    const perf_oracle some = {oracle->dtype, oracle->op, expect.ranks, oracle->repetition};
    if (c->collective->reduces)
        return perf_oracle_check_reduced(&some, expect.first_index, c->count, data);
    return perf_oracle_check_copy(oracle, expect.first_rank, expect.first_index, c->count, data);
}

/* Input elements that changed and are no output: all of them out of place, the other ranks'
 * blocks where the input holds blocks and one of them is the output. */
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

static uint64_t wrong_elements(const perf_case *c, const perf_oracle *oracle, perf_place place)
{
    const size_t block_bytes = c->count * ring_dtype_size(c->dtype);
    const int blocks = c->collective->dst_blocks ? c->ranks : 1;
    uint64_t wrong = changed_input(c, oracle, place);
    for (int block = 0; block < blocks; block++)
        wrong += wrong_block(c, oracle, block, place.dst + (size_t)block * block_bytes);
    return wrong;
}

perf_wrong perf_check(const perf_buffers *buffers, const perf_case *c, int unalign,
                      uint32_t repetition)
{
    const perf_oracle oracle = oracle_of(c, repetition);
    const perf_place place = perf_place_of(buffers, c, unalign);
    return (perf_wrong){wrong_elements(c, &oracle, place),
                        changed_around(src_area(buffers, c, place)) +
                            changed_around(dst_area(buffers, c, place))};
}
