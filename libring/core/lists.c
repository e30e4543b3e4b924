/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the list forms, which are v-forms with an address for each block. They use the
 * programs of v-forms with contiguous blocks, so new addresses need no new program: an operand
 * holds the number of its block, and its offset in the contiguous vector. A work has a base address
 * for each block, which is the block's address minus its offset in the vector, so that base plus
 * operand offset is the operand's address.
 */
#include "lists.h"

#include "regions.h"
#include "shape.h"

#include <stdlib.h>

typedef struct list_block {
    uintptr_t begin, end;
    int rank, side;
} list_block;

/* ---- Checks ------------------------------------------------------------------------------ */

static ring_status check_addresses(const program *p, int side, const void *const *list, int ranks)
{
    const size_t size = ring_dtype_size(p->call.dtype), *counts = p->shape.counts[side];
    for (int i = 0; i < ranks; i++) {
        if (counts[i] > 0 && list[i] == NULL)
            return fail(RING_ERR_ARGUMENT, "ring_%s: block %d of %s is NULL but has %zu element%s",
                        p->facts->name, i, shape_side_name(side), counts[i], plural(counts[i]));
        if (counts[i] > 0 && (uintptr_t)list[i] % size != 0)
            return fail(RING_ERR_ARGUMENT,
                        "ring_%s: block %d of %s must be aligned to %zu bytes, for %s",
                        p->facts->name, i, shape_side_name(side), size,
                        ring_dtype_name(p->call.dtype));
    }
    return RING_OK;
}

static int add_block(list_block *all, int used, const void *at, size_t bytes, int rank, int side)
{
    if (bytes > 0)
        all[used++] = (list_block){(uintptr_t)at, (uintptr_t)at + bytes, rank, side};
    return used;
}

static int add_list(list_block *all, int used, const program *p, const void *const *list, int side,
                    int ranks)
{
    const size_t size = ring_dtype_size(p->call.dtype);
    for (int i = 0; i < ranks; i++)
        used = add_block(all, used, list[i], p->shape.counts[side][i] * size, i, side);
    return used;
}

/* Collects all blocks of both sides. If the call is in place, the buffer that is not a list is one
 * of the listed blocks, and is not added again. @return the number of blocks. */
static int collect(list_block *all, const program *p, const call_buffers *b, int ranks)
{
    const int rank = p->shape.rank;
    const void *const *src = b->lists[PLAN_SRC], *const *dst = b->lists[PLAN_DST];
    int used = 0;
    if (src != NULL)
        used = add_list(all, used, p, src, PLAN_SRC, ranks);
    if (dst != NULL)
        used = add_list(all, used, p, dst, PLAN_DST, ranks);
    if (src == NULL && b->src != dst[rank])
        used = add_block(all, used, b->src, b->src_bytes, rank, PLAN_SRC);
    if (dst == NULL && b->dst != src[rank])
        used = add_block(all, used, b->dst, b->dst_bytes, rank, PLAN_DST);
    return used;
}

/* Sorts by address. Shell sort needs no memory and is fast on lists that are nearly sorted. */
static void sort(list_block *all, int count)
{
    int gap = 1;
    while (gap < count / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (int i = gap; i < count; i++) {
            const list_block moved = all[i];
            int at = i;
            for (; at >= gap && all[at - gap].begin > moved.begin; at -= gap)
                all[at] = all[at - gap];
            all[at] = moved;
        }
}

static ring_status overlap(const program *p, const list_block *a, const list_block *b)
{
    return fail(RING_ERR_ARGUMENT,
                "ring_%s: the blocks of ranks %d (%s) and %d (%s) overlap, at %p and %p",
                p->facts->name, a->rank, shape_side_name(a->side), b->rank,
                shape_side_name(b->side), (void *)a->begin, (void *)b->begin);
}

/* Checks that blocks do not overlap. As in v-forms, blocks that are only read may overlap unless
 * they are reduced. The blocks are sorted by their starts, so one pass suffices: it compares each
 * block with the furthest end of the earlier blocks, for each side separately. */
static ring_status check_apart(const program *p, const list_block *all, int count)
{
    const list_block *last[2] = {NULL, NULL}; /* [side] the earlier block with the furthest end */
    for (const list_block *b = all; b < all + count; b++) {
        for (int side = 0; side < 2; side++) {
            const bool both_read = b->side == PLAN_SRC && side == PLAN_SRC && !p->facts->reduces;
            if (!both_read && last[side] != NULL && last[side]->end > b->begin)
                return overlap(p, last[side], b);
        }
        if (last[b->side] == NULL || last[b->side]->end < b->end)
            last[b->side] = b;
    }
    return RING_OK;
}

ring_status lists_check(ring_comm *comm, const program *p, const call_buffers *b)
{
    const size_t most = 2 * (size_t)comm->ranks;
    for (int side = 0; side < 2; side++)
        if (b->lists[side] != NULL)
            RING_TRY(check_addresses(p, side, b->lists[side], comm->ranks));
    if (comm->memory.list_blocks == NULL)
        comm->memory.list_blocks = malloc(most * sizeof *comm->memory.list_blocks);
    if (comm->memory.list_blocks == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while checking the blocks of ring_%s",
                    p->facts->name);
    const int count = collect(comm->memory.list_blocks, p, b, comm->ranks);
    sort(comm->memory.list_blocks, count);
    return check_apart(p, comm->memory.list_blocks, count);
}

/* ---- A work ------------------------------------------------------------------------------- */

struct list_room {
    int held;          /* number of regions held */
    uint64_t *regions; /* [2 * ranks] */
    uintptr_t bases[]; /* [2 sides][ranks] see the head of this file */
};

ring_status lists_make_room(work *w)
{
    const size_t places = 2 * (size_t)w->comm->ranks;
    if (w->list_room != NULL)
        return RING_OK;
    struct list_room *room = malloc(sizeof *room +
                                    places * (sizeof *room->bases + sizeof *room->regions));
    if (room == NULL)
        return fail(RING_ERR_MEMORY,
                    "out of memory while storing the addresses of the blocks of a call");
    room->held = 0;
    room->regions = (uint64_t *)(void *)(room->bases + places);
    w->list_room = room;
    return RING_OK;
}

void lists_bind(work *w, const call_buffers *b)
{
    const int ranks = w->comm->ranks;
    const size_t size = ring_dtype_size(w->call.dtype);
    for (int side = 0; side < 2; side++) {
        if (b->lists[side] == NULL)
            continue;
        uintptr_t *bases = w->list_room->bases + (ptrdiff_t)side * ranks;
        for (int i = 0; i < ranks; i++)
            bases[i] = (uintptr_t)b->lists[side][i] - w->program->shape.displs[side][i] * size;
        w->bases[side] = bases;
    }
    if (!w->buffers.products.missing)
        return;
    /* The products of src and the factor are contiguous, even if src is a list. */
    w->buffers.products.list = w->bases[PLAN_SRC];
    w->bases[PLAN_SRC] = NULL;
}

uint64_t lists_hold(work *w, int side, uint64_t (*hold)(const void *, size_t))
{
    const plan_shape *shape = &w->program->shape;
    const size_t size = ring_dtype_size(w->call.dtype);
    struct list_room *room = w->list_room;
    for (int i = 0; i < w->comm->ranks; i++) {
        const size_t bytes = shape->counts[side][i] * size;
        const char *at = (const char *)(w->bases[side][i] + shape->displs[side][i] * size);
        const uint64_t held = bytes > 0 ? hold(at, bytes) : 0;
        if (held != 0)
            room->regions[room->held++] = held;
        else if (bytes > 0)
            return 0;
    }
    return region_ref_to(REGION_HEAP_ID, 0); /* not 0; list_room has the regions to be released */
}

void lists_release(work *w)
{
    struct list_room *room = w->list_room;
    while (room->held > 0)
        region_release(room->regions[--room->held]);
}
