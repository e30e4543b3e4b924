/* SPDX-License-Identifier: Apache-2.0
 *
 * oneshot: sends one message for each pair of ranks. Each rank eagerly sends its vector, or block,
 * to every rank that needs it. A receiver folds the vectors in rank order, 0, 1, ..., n - 1, in one
 * pass. No acknowledgements are needed. Every rank combines everything, so this is for short calls,
 * whose messages cost more than their bytes. The messages from one rank to another must fit into
 * the link together.
 */
#include "algo_build.h"

static void send_block(plan *p, int peer, plan_buffer to)
{
    plan_send_eager(p, PLAN_SRC, algo_block(p, p->rank, peer), algo_block_chunks(p), peer, to);
}

static void recv_block(plan *p, int peer)
{
    plan_recv(p, peer, PLAN_DST, algo_block(p, peer, p->rank), algo_block_chunks(p));
}

static void send_to_all(plan *p, plan_buffer to)
{
    for (int i = 1; i < p->ranks; i++)
        send_block(p, algo_neighbour(p, i), to);
}

static void recv_from_all(plan *p)
{
    for (int i = 1; i < p->ranks; i++)
        recv_block(p, algo_neighbour(p, -i));
}

/* Folds one block from ranks [0, count), in rank order, into dst. */
static void fold_from(plan *p, int count)
{
    plan_fold(p, algo_block(p, p->rank, p->rank), algo_block_chunks(p));
    for (int rank = 0; rank < count; rank++) {
        if (rank == p->rank)
            plan_fold_local(p, PLAN_SRC);
        else
            plan_fold_message(p, rank, PLAN_WIRE_DATA);
    }
    plan_fold_into(p, PLAN_DST);
}

static void copy_own(plan *p)
{
    const int own = algo_block(p, p->rank, p->rank);
    plan_copy(p, PLAN_SRC, own, PLAN_DST, own, algo_block_chunks(p));
}

/* Sends count elements (all-reduce) or the peer's block (reduce-scatter) to each peer, and folds
 * its own elements with those received. */
static void fold_everywhere(plan *p)
{
    send_to_all(p, PLAN_WIRE);
    fold_from(p, p->ranks);
}

/* In a scan or exscan, each rank sends count elements to each higher rank, and folds the elements
 * of the lower ones. */
static void fold_prefix(plan *p)
{
    const int count = plan_combined_ranks(p->collective, p->rank, p->ranks);
    for (int peer = p->rank + 1; peer < p->ranks; peer++)
        send_block(p, peer, PLAN_WIRE);
    if (count > 0)
        fold_from(p, count);
}

/* Sends a block to each peer and receives a block from each; in a barrier, blocks are empty. */
static void exchange(plan *p)
{
    send_to_all(p, PLAN_DST);
    if (p->collective != PLAN_BARRIER)
        copy_own(p);
    recv_from_all(p);
}

/* The root sends count elements (broadcast) or the rank's block (scatter) to each rank. */
static void give(plan *p)
{
    if (p->rank != p->root) {
        recv_block(p, p->root);
        return;
    }
    send_to_all(p, PLAN_DST);
    copy_own(p);
}

/* Each rank sends its block to the root. */
static void gather(plan *p)
{
    if (p->rank != p->root) {
        send_block(p, p->root, PLAN_DST);
        return;
    }
    copy_own(p);
    recv_from_all(p);
}

/* Each rank sends its vector to the root, which folds all n vectors. */
static void reduce(plan *p)
{
    if (p->rank == p->root)
        fold_from(p, p->ranks);
    else
        send_block(p, p->root, PLAN_WIRE);
}

static void write_oneshot(plan *p, const plan_world *world)
{
    static void (*const parts[])(plan * p) = {
        [PLAN_ALL_REDUCE] = fold_everywhere,
        [PLAN_REDUCE_SCATTER] = fold_everywhere,
        [PLAN_ALL_GATHER] = exchange,
        [PLAN_BROADCAST] = give,
        [PLAN_REDUCE] = reduce,
        [PLAN_GATHER] = gather,
        [PLAN_SCATTER] = give,
        [PLAN_ALL_TO_ALL] = exchange,
        [PLAN_SCAN] = fold_prefix,
        [PLAN_EXSCAN] = fold_prefix,
        [PLAN_BARRIER] = exchange,
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
