/* SPDX-License-Identifier: Apache-2.0
 * Reads the counts and displacements of v-forms at every call, and checks them once per program. */
#include "shape.h"

#include <stdlib.h>
#include <string.h>

enum { SIDES = 2, CHECKSUM_MOST = 0x3fff }; /* the largest root that a packed signature holds */

const char *shape_side_name(int side)
{
    return side == PLAN_SRC ? "src" : "dst";
}

/* ---- Reading ------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t h, size_t value)
{
    h = (h ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

static uint64_t digest_of(const plan_shape *shape, int ranks)
{
    uint64_t h = mix(1, shape->own);
    for (int side = 0; side < SIDES; side++)
        for (int i = 0; shape->counts[side] != NULL && i < ranks; i++)
            h = mix(h, shape->counts[side][i]);
    return h;
}

/* All ranks know all counts of this collective. The signature's root becomes a checksum of the
 * counts, and its count the longest one, so that ranks with different counts are detected. */
static void agree_on(call_signature *call, plan_shape *shape, int rank, int ranks)
{
    const size_t *counts = shape->counts[shape->counts[PLAN_SRC] != NULL ? PLAN_SRC : PLAN_DST];
    shape->own = 0;
    call->root = (int32_t)(digest_of(shape, ranks) % CHECKSUM_MOST);
    call->count = 0;
    for (int i = 0; i < ranks; i++)
        call->count = max_size(call->count, counts[i]);
    shape->own = counts[rank];
}

ring_status shape_read(call_signature *call, plan_shape *shape, int rank, int ranks)
{
    const plan_facts *facts = plan_facts_of(call->collective);
    shape->rank = rank;
    for (int side = 0; side < SIDES; side++) {
        const plan_side at = side == PLAN_SRC ? facts->src_at : facts->dst_at;
        const bool blocks = side == PLAN_SRC ? facts->src_blocks : facts->dst_blocks;
        if (!blocks || !plan_is_on(at, rank, call->root))
            shape->counts[side] = shape->displs[side] = NULL;
        else if (shape->counts[side] == NULL)
            return fail(RING_ERR_ARGUMENT, "ring_%s: the counts of %s are NULL", facts->name,
                        shape_side_name(side));
    }
    if (!facts->personalized)
        agree_on(call, shape, rank, ranks);
    call->shape = shape;
    call->digest = digest_of(shape, ranks);
    return RING_OK;
}

static bool same_side(const plan_shape *kept, const plan_shape *given, int side, int ranks)
{
    const size_t *counts = given->counts[side], *displs = given->displs[side];
    size_t next = 0; /* where a contiguous block would start */
    if (counts == NULL || kept->counts[side] == NULL)
        return counts == kept->counts[side];
    for (int i = 0; i < ranks; i++) {
        const size_t displ = displs != NULL ? displs[i] : next;
        if (counts[i] != kept->counts[side][i] || (counts[i] > 0 && displ != kept->displs[side][i]))
            return false;
        next += counts[i];
    }
    return true;
}

bool shape_is_same(const plan_shape *kept, const plan_shape *given, int ranks)
{
    return kept->own == given->own && same_side(kept, given, PLAN_SRC, ranks) &&
           same_side(kept, given, PLAN_DST, ranks);
}

/* ---- Checking ------------------------------------------------------------------------------ */

typedef struct extent {
    size_t begin, end;
    int rank;
} extent;

static int by_begin(const void *a, const void *b)
{
    const extent *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Checks that blocks do not overlap. This is required of dst, and of src if it is reduced, because
 * it may be reduced in place. */
static ring_status check_apart(const program *p, int side, int ranks)
{
    const plan_shape *shape = &p->shape;
    extent *all = malloc((size_t)ranks * sizeof *all);
    ring_status status = RING_OK;
    int used = 0;
    if (all == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while checking the counts of ring_%s",
                    p->facts->name);
    for (int i = 0; i < ranks; i++) {
        const size_t begin = shape->displs[side][i], count = shape->counts[side][i];
        if (count > 0)
            all[used++] = (extent){begin, begin + count, i};
    }
    qsort(all, (size_t)used, sizeof *all, by_begin);
    for (int i = 1; i < used && status == RING_OK; i++) {
        const extent *a = &all[i - 1], *b = &all[i];
        if (b->begin < a->end)
            status = fail(RING_ERR_ARGUMENT,
                          "ring_%s: the blocks of ranks %d and %d overlap in %s: elements %zu to "
                          "%zu and %zu to %zu",
                          p->facts->name, a->rank, b->rank, shape_side_name(side), a->begin,
                          a->end - 1, b->begin, b->end - 1);
    }
    free(all);
    return status;
}

static ring_status too_much(const program *p, int side)
{
    return fail(RING_ERR_ARGUMENT, "ring_%s: the counts of %s are more than memory can hold",
                p->facts->name, shape_side_name(side));
}

/* @param[out] bytes  the bytes up to the end of the last block that is not empty. */
static ring_status find_bytes(const program *p, int side, int ranks, size_t *bytes)
{
    const plan_shape *shape = &p->shape;
    const size_t most = PTRDIFF_MAX / ring_dtype_size(p->call.dtype);
    size_t end = shape->own;
    if (shape->counts[side] != NULL)
        end = 0;
    for (int i = 0; shape->counts[side] != NULL && i < ranks; i++) {
        const size_t begin = shape->displs[side][i], count = shape->counts[side][i];
        if (count > most || (count > 0 && begin > most - count))
            return too_much(p, side);
        end = count > 0 ? max_size(end, begin + count) : end;
    }
    if (end > most)
        return too_much(p, side);
    *bytes = end * ring_dtype_size(p->call.dtype);
    return RING_OK;
}

static ring_status check_side(const program *p, int side, int ranks, size_t *bytes)
{
    RING_TRY(find_bytes(p, side, ranks, bytes));
    const bool apart = side == PLAN_DST || p->facts->reduces;
    return apart && p->shape.counts[side] != NULL ? check_apart(p, side, ranks) : RING_OK;
}

/* A rank's own block is in src and in dst, so the two counts must be equal. */
static ring_status check_own(const program *p)
{
    const plan_shape *shape = &p->shape;
    const size_t *src = shape->counts[PLAN_SRC], *dst = shape->counts[PLAN_DST];
    const size_t given = src != NULL ? src[shape->rank] : shape->own;
    const size_t taken = dst != NULL ? dst[shape->rank] : shape->own;
    if (given == taken || !p->src_here || !p->dst_here)
        return RING_OK;
    return fail(RING_ERR_ARGUMENT, "ring_%s: rank %d sends itself %zu elements and expects %zu",
                p->facts->name, shape->rank, given, taken);
}

/* ---- Keeping ------------------------------------------------------------------------------- */

static size_t room_for(const plan_shape *shape, int ranks)
{
    const size_t sides = (size_t)(shape->counts[PLAN_SRC] != NULL) +
                         (size_t)(shape->counts[PLAN_DST] != NULL);
    return 2 * sides * (size_t)ranks;
}

size_t shape_bytes(const program *p, int ranks)
{
    return p->facts->uneven ? room_for(&p->shape, ranks) * sizeof *p->room : 0;
}

/* Copies the counts and displacements of a side. The displacement of an empty block becomes 0.
 * @return the first free element of @p room. */
static size_t *copy_side(plan_shape *shape, int side, int ranks, size_t *room)
{
    size_t *counts = room, *displs = room + ranks, next = 0;
    for (int i = 0; i < ranks; i++) {
        counts[i] = shape->counts[side][i];
        displs[i] = shape->displs[side] != NULL ? shape->displs[side][i] : next;
        displs[i] = counts[i] > 0 ? displs[i] : 0;
        next += counts[i];
    }
    shape->counts[side] = counts;
    shape->displs[side] = displs;
    return displs + ranks;
}

static ring_status copy_shape(program *p, int ranks)
{
    p->shape = *p->call.shape;
    p->room = malloc(room_for(&p->shape, ranks) * sizeof *p->room + 1);
    if (p->room == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while keeping the counts of ring_%s",
                    p->facts->name);
    size_t *room = p->room;
    for (int side = 0; side < SIDES; side++)
        if (p->shape.counts[side] != NULL)
            room = copy_side(&p->shape, side, ranks, room);
    p->call.shape = &p->shape;
    return RING_OK;
}

ring_status shape_bind(program *p, int ranks)
{
    RING_TRY(copy_shape(p, ranks));
    RING_TRY(check_side(p, PLAN_SRC, ranks, &p->src_bytes));
    RING_TRY(check_side(p, PLAN_DST, ranks, &p->dst_bytes));
    RING_TRY(check_own(p));
    p->longest = p->shape.own;
    for (int side = 0; side < SIDES; side++)
        for (int i = 0; p->shape.counts[side] != NULL && i < ranks; i++)
            p->longest = max_size(p->longest, p->shape.counts[side][i]);
    const size_t *displs = p->shape.displs[p->shape.counts[PLAN_SRC] != NULL ? PLAN_SRC : PLAN_DST];
    p->block = displs != NULL ? displs[p->shape.rank] * ring_dtype_size(p->call.dtype) : 0;
    return RING_OK;
}
