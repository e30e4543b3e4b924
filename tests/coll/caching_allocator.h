/* SPDX-License-Identifier: Apache-2.0
 *
 * caching_allocator: memory of a GPU as PyTorch's caching allocator hands it out. Segments of 2 and
 * 20 MiB are split into blocks, each of which belongs to a stream. A block that other streams have
 * used is free when events of these streams have passed. Segments go back to the driver only when
 * memory is short, or when the program asks for it. One thread uses an allocator. */
#ifndef TESTS_COLL_CACHING_ALLOCATOR_H
#define TESTS_COLL_CACHING_ALLOCATOR_H

#include "doubles/cuda/cuda_table.h"

#include <stdbool.h>

enum {
    CACHING_USERS_MOST = 4,
    CACHING_PENDING_MOST = 512,
    CACHING_SEGMENTS_MOST = 128,
    CACHING_EVENTS_MOST = 64
};

typedef struct caching_block {
    CUdeviceptr at;
    size_t bytes;
    int segment;
    bool used;
    CUstream stream;                    /* of the allocation */
    CUstream users[CACHING_USERS_MOST]; /* other streams */
    int user_count, events_left;
    struct caching_block *before, *after; /* in its segment */
} caching_block;

typedef struct caching_allocator {
    const cuda_table *cu;
    size_t limit, reserved;                         /* bytes of segments: the most, and now */
    caching_block *segments[CACHING_SEGMENTS_MOST]; /* their first blocks; NULL: none */
    bool small[CACHING_SEGMENTS_MOST];
    struct {
        CUevent event;
        caching_block *block;
    } pending[CACHING_PENDING_MOST]; /* in the order of their records */
    int pending_count;
    CUevent events[CACHING_EVENTS_MOST]; /* idle ones */
    int event_count;
    int taken, freed; /* segments that were allocated and freed */
} caching_allocator;

/** @return a block of at least @p bytes; NULL: there is no memory, or the driver failed. */
caching_block *caching_take(caching_allocator *a, size_t bytes, CUstream stream);
/** @p stream uses the block, besides the stream for which it was taken. */
void caching_record(caching_block *b, CUstream stream);
/** The streams may still use the block. @return false: the driver failed. */
bool caching_give(caching_allocator *a, caching_block *b);
/** Waits for the pending events, and frees all segments without used blocks.
 *  @return false: the driver failed. */
bool caching_empty(caching_allocator *a);
/** Frees everything, when no block is used. */
bool caching_close(caching_allocator *a);

#endif
