/* SPDX-License-Identifier: Apache-2.0
 * A stand-in for PyTorch's caching allocator, which makes the same calls of the driver in the same
 * situations: cuMemAlloc for a segment when no block fits, events for blocks of several streams,
 * and cuMemFree in the middle of the program's calls. */
#include "caching_allocator.h"

#include <stdlib.h>

enum {
    ROUND = 512,
    SMALL_MOST = 1 << 20,      /* larger blocks come from large segments */
    SMALL_SEGMENT = 2 << 20,   /* bytes */
    LARGE_SEGMENT = 20 << 20,  /* of blocks of up to LARGE_MOST bytes */
    LARGE_MOST = 10 << 20,     /* larger blocks have segments of their own */
    SEGMENT_ROUND = 2 << 20,   /* the sizes of these */
    LEFT_OVER_LEAST = 1 << 20, /* a large block is split if more is left */
};

static size_t segment_bytes(size_t bytes)
{
    return bytes <= SMALL_MOST   ? SMALL_SEGMENT
           : bytes <= LARGE_MOST ? LARGE_SEGMENT
                                 : (bytes + SEGMENT_ROUND - 1) / SEGMENT_ROUND * SEGMENT_ROUND;
}

static bool is_whole(const caching_block *b)
{
    return !b->used && b->events_left == 0 && b->before == NULL && b->after == NULL;
}

/* ---- Blocks ------------------------------------------------------------------------------- */

static caching_block *best_fit(const caching_allocator *a, size_t bytes, CUstream stream)
{
    caching_block *best = NULL;
    for (int i = 0; i < CACHING_SEGMENTS_MOST; i++) {
        if (a->small[i] != (bytes <= SMALL_MOST))
            continue;
        for (caching_block *b = a->segments[i]; b != NULL; b = b->after)
            if (!b->used && b->events_left == 0 && b->stream == stream && b->bytes >= bytes &&
                (best == NULL || b->bytes < best->bytes))
                best = b;
    }
    return best;
}

static void split(const caching_allocator *a, caching_block *b, size_t bytes)
{
    const size_t left = b->bytes - bytes;
    caching_block *rest;
    if (left < (a->small[b->segment] ? ROUND : LEFT_OVER_LEAST) ||
        (rest = calloc(1, sizeof *rest)) == NULL)
        return;
    *rest = (caching_block){.at = b->at + bytes,
                            .bytes = left,
                            .segment = b->segment,
                            .stream = b->stream,
                            .before = b,
                            .after = b->after};
    if (b->after != NULL)
        b->after->before = rest;
    b->after = rest;
    b->bytes = bytes;
}

static bool is_free(const caching_block *b)
{
    return b != NULL && !b->used && b->events_left == 0;
}

/* @p b gets the bytes of the block after it. */
static void merge(caching_block *b)
{
    caching_block *gone = b->after;
    b->bytes += gone->bytes;
    b->after = gone->after;
    if (gone->after != NULL)
        gone->after->before = b;
    free(gone);
}

static void merge_around(caching_block *b)
{
    if (is_free(b->after))
        merge(b);
    if (is_free(b->before))
        merge(b->before);
}

/* ---- Segments ----------------------------------------------------------------------------- */

static caching_block *add_segment(caching_allocator *a, size_t bytes, CUstream stream)
{
    caching_block *b = calloc(1, sizeof *b);
    int i = 0;
    while (i < CACHING_SEGMENTS_MOST && a->segments[i] != NULL)
        i++;
    if (b == NULL || i == CACHING_SEGMENTS_MOST) {
        free(b);
        return NULL;
    }
    *b = (caching_block){.bytes = segment_bytes(bytes), .segment = i, .stream = stream};
    if (a->cu->mem_alloc(&b->at, b->bytes) != CUDA_SUCCESS) {
        free(b);
        return NULL;
    }
    a->segments[i] = b;
    a->small[i] = bytes <= SMALL_MOST;
    a->reserved += b->bytes;
    a->taken++;
    return b;
}

static bool free_segments(caching_allocator *a)
{
    bool all = true;
    for (int i = 0; i < CACHING_SEGMENTS_MOST; i++) {
        caching_block *b = a->segments[i];
        if (b == NULL || !is_whole(b))
            continue;
        all &= a->cu->mem_free(b->at) == CUDA_SUCCESS;
        a->reserved -= b->bytes;
        a->segments[i] = NULL;
        a->freed++;
        free(b);
    }
    return all;
}

/* ---- Events ------------------------------------------------------------------------------- */

static bool add_event(caching_allocator *a, caching_block *b, CUstream stream)
{
    CUevent event = NULL;
    if (a->event_count > 0)
        event = a->events[--a->event_count];
    else if (a->cu->event_create(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
        return false;
    if (a->pending_count == CACHING_PENDING_MOST ||
        a->cu->event_record(event, stream) != CUDA_SUCCESS)
        return false;
    a->pending[a->pending_count].event = event;
    a->pending[a->pending_count++].block = b;
    b->events_left++;
    return true;
}

/* Removes the pending event @p i, which has passed. */
static void end_event(caching_allocator *a, int i)
{
    caching_block *b = a->pending[i].block;
    if (a->event_count < CACHING_EVENTS_MOST)
        a->events[a->event_count++] = a->pending[i].event;
    else
        (void)a->cu->event_destroy(a->pending[i].event);
    a->pending_count--;
    for (int k = i; k < a->pending_count; k++)
        a->pending[k] = a->pending[k + 1];
    if (--b->events_left == 0)
        merge_around(b);
}

static void process_events(caching_allocator *a)
{
    for (int i = 0; i < a->pending_count;) {
        if (a->cu->event_query(a->pending[i].event) == CUDA_SUCCESS)
            end_event(a, i);
        else
            i++;
    }
}

/* ---- The allocator ------------------------------------------------------------------------ */

caching_block *caching_take(caching_allocator *a, size_t bytes, CUstream stream)
{
    bytes = (bytes + ROUND - 1) / ROUND * ROUND;
    process_events(a);
    caching_block *b = best_fit(a, bytes, stream);
    if (b == NULL && a->reserved + segment_bytes(bytes) > a->limit && !caching_empty(a))
        return NULL;
    if (b == NULL)
        b = add_segment(a, bytes, stream);
    if (b == NULL)
        return NULL;
    split(a, b, bytes);
    b->used = true;
    b->user_count = 0;
    return b;
}

void caching_record(caching_block *b, CUstream stream)
{
    for (int i = 0; i < b->user_count; i++)
        if (b->users[i] == stream)
            return;
    if (stream != b->stream && b->user_count < CACHING_USERS_MOST)
        b->users[b->user_count++] = stream;
}

bool caching_give(caching_allocator *a, caching_block *b)
{
    b->used = false;
    for (int i = 0; i < b->user_count; i++)
        if (!add_event(a, b, b->users[i]))
            return false;
    if (b->events_left == 0)
        merge_around(b);
    return true;
}

bool caching_empty(caching_allocator *a)
{
    while (a->pending_count > 0) {
        if (a->cu->event_synchronize(a->pending[0].event) != CUDA_SUCCESS)
            return false;
        end_event(a, 0);
    }
    return free_segments(a);
}

bool caching_close(caching_allocator *a)
{
    const bool freed = caching_empty(a);
    while (a->event_count > 0)
        (void)a->cu->event_destroy(a->events[--a->event_count]);
    return freed && a->reserved == 0;
}
