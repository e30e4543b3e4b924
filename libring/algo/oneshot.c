/* SPDX-License-Identifier: Apache-2.0
 *
 * oneshot: one meeting. Each rank eagerly sends all it has to whoever needs it, folds what comes
 * in rank order, 0, 1, ..., n - 1, in one pass, and is done: nobody answers anybody. Everybody
 * combines everything, so it is for calls whose messages cost more than their bytes; and all
 * that one rank sends another must fit the link.
 */
#include "algo_build.h"

/* The block that is for, or of, a rank; everything if there are no blocks. */
static int block_of(const plan *p, int rank)
{
    return plan_blocks(p->collective, p->ranks) > 1 ? rank * (p->chunks / p->ranks) : 0;
}

static int block_chunks(const plan *p)
{
    return p->chunks / plan_blocks(p->collective, p->ranks);
}

static void send_to_all(plan *p, plan_buffer to)
{
    const bool scatters = p->collective == PLAN_REDUCE_SCATTER;
    for (int i = 1; i < p->ranks; i++) {
        const int peer = algo_neighbour(p, i);
        plan_send_eager(p, PLAN_SRC, block_of(p, scatters ? peer : p->rank), block_chunks(p), peer,
                        to);
    }
}

static void fold_from_all(plan *p)
{
    plan_fold(p, block_of(p, p->rank), block_chunks(p));
    for (int rank = 0; rank < p->ranks; rank++) {
        if (rank == p->rank)
            plan_fold_local(p, PLAN_SRC);
        else
            plan_fold_message(p, rank, PLAN_WIRE_DATA);
    }
    plan_fold_into(p, PLAN_DST);
}

static void copy_own(plan *p)
{
    const int own = block_of(p, p->rank);
    plan_copy(p, PLAN_SRC, own, PLAN_DST, own, block_chunks(p));
}

/* All-reduce, reduce-scatter. */
static void fold_everywhere(plan *p)
{
    send_to_all(p, PLAN_WIRE);
    fold_from_all(p);
}

/* All-gather; barrier: one of no elements. */
static void gather(plan *p)
{
    send_to_all(p, PLAN_DST);
    if (p->collective == PLAN_ALL_GATHER)
        copy_own(p);
    for (int i = 1; i < p->ranks; i++) {
        const int peer = algo_neighbour(p, -i);
        plan_recv(p, peer, PLAN_DST, block_of(p, peer), block_chunks(p));
    }
}

static void broadcast(plan *p)
{
    if (p->rank != p->root) {
        plan_recv(p, p->root, PLAN_DST, 0, p->chunks);
        return;
    }
    send_to_all(p, PLAN_DST);
    copy_own(p);
}

static void reduce(plan *p)
{
    if (p->rank == p->root)
        fold_from_all(p);
    else
        plan_send_eager(p, PLAN_SRC, 0, p->chunks, p->root, PLAN_WIRE);
}

static void write_oneshot(plan *p, const plan_world *world)
{
    static void (*const parts[])(plan * p) = {
        [PLAN_ALL_REDUCE] = fold_everywhere,
        [PLAN_REDUCE_SCATTER] = fold_everywhere,
        [PLAN_ALL_GATHER] = gather,
        [PLAN_BROADCAST] = broadcast,
        [PLAN_REDUCE] = reduce,
        [PLAN_BARRIER] = gather,
    };
    (void)world;
    parts[p->collective](p);
}

int algo_oneshot_chunks(plan_collective collective, const plan_world *world, size_t bytes)
{
    (void)bytes;
    return plan_blocks(collective, world->ranks);
}

plan *algo_oneshot_build(const algo_call *call)
{
    return algo_build("oneshot", call, write_oneshot);
}
