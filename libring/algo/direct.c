/* SPDX-License-Identifier: Apache-2.0
 *
 * direct: every rank exchanges with every rank. Each folds its own block from all ranks' buffers in
 * one pass and writes the result into all of them in the same pass: n inputs, n outputs, two
 * messages a pair. Where links map memory no byte is copied on the way; elsewhere it is correct,
 * with more messages than the ring.
 *
 * Block b is combined in the ring's order b + 1, b + 2, ..., b: same bits; in the order of ranks
 * where the world asks for that. Each rank sends to the ranks behind it first and receives from the
 * ranks before it first, so that they do not all use rank 0 at once, and messages are taken in the
 * order in which they come.
 */
#include "algo_build.h"

static int parts_of(const plan *p)
{
    return p->chunks / p->ranks;
}

/* Sends every peer a block (count / n elements): the peer's, or this rank's. */
static void send_blocks(plan *p, bool mine, plan_buffer to)
{
    for (int i = 1; i < p->ranks; i++) {
        const int peer = algo_neighbour(p, i);
        plan_send(p, PLAN_SRC, (mine ? p->rank : peer) * parts_of(p), parts_of(p), peer, to);
    }
}

/* Receives every peer's block (count / n elements) into dst, the nearest lower rank's first. */
static void recv_blocks(plan *p)
{
    for (int i = 1; i < p->ranks; i++) {
        const int peer = algo_neighbour(p, -i);
        plan_recv(p, peer, PLAN_DST, peer * parts_of(p), parts_of(p));
    }
}

/* Folds a block, or chunks of one, from all ranks, starting behind its number or at rank 0. */
static void fold_chunks(plan *p, int chunk, int chunks)
{
    const int first = p->rank_order ? 0 : chunk / parts_of(p) + 1;
    plan_fold(p, chunk, chunks);
    for (int i = 0; i < p->ranks; i++) {
        const int rank = (first + i) % p->ranks;
        if (rank == p->rank)
            plan_fold_local(p, PLAN_SRC);
        else
            plan_fold_message(p, rank, PLAN_WIRE_DATA);
    }
    plan_fold_into(p, PLAN_DST);
}

/* Waits until all peers have taken their messages: none of them answers. */
static void wait_for_all(plan *p)
{
    for (int i = 1; i < p->ranks; i++)
        plan_wait(p, algo_neighbour(p, i), 0);
}

static void copy_own(plan *p)
{
    const int own = algo_block(p, p->rank, p->rank);
    plan_copy(p, PLAN_SRC, own, PLAN_DST, own, algo_block_chunks(p));
}

static void give_block(plan *p, int peer)
{
    plan_send(p, PLAN_SRC, algo_block(p, p->rank, peer), algo_block_chunks(p), peer, PLAN_DST);
}

static void get_block(plan *p, int peer)
{
    plan_recv(p, peer, PLAN_DST, algo_block(p, peer, p->rank), algo_block_chunks(p));
}

/* Step i = 1 .. n - 1: the block for rank r + i goes from src to its dst. */
static void give_blocks(plan *p)
{
    for (int i = 1; i < p->ranks; i++)
        give_block(p, algo_neighbour(p, i));
}

/* Step i = 1 .. n - 1: the block of rank r - i comes into dst. */
static void get_blocks(plan *p)
{
    for (int i = 1; i < p->ranks; i++)
        get_block(p, algo_neighbour(p, -i));
}

/* 1: sends each peer its block of src. 2: folds block r from all ranks, and writes the result to
 * dst of all. 3: receives the other blocks. A peer's result shows that it has read its block: no
 * waits. */
static void write_all_reduce(plan *p)
{
    send_blocks(p, false, PLAN_WIRE);
    fold_chunks(p, p->rank * parts_of(p), parts_of(p));
    for (int i = 1; i < p->ranks; i++)
        plan_fold_to(p, algo_neighbour(p, i), PLAN_DST);
    recv_blocks(p);
}

/* Sends each peer its block of src, and folds block r from all ranks into dst. */
static void write_reduce_scatter(plan *p)
{
    send_blocks(p, false, PLAN_WIRE);
    fold_chunks(p, p->rank * parts_of(p), parts_of(p));
    wait_for_all(p);
}

/* All-gather, all-to-all: a block to each peer, one from each. */
static void write_exchange(plan *p)
{
    give_blocks(p);
    copy_own(p);
    get_blocks(p);
    wait_for_all(p);
}

static void write_barrier(plan *p)
{
    send_blocks(p, true, PLAN_DST);
    recv_blocks(p);
}

/* Broadcast (count elements to each), scatter (each rank its block). */
static void write_giving(plan *p)
{
    if (p->rank != p->root) {
        get_block(p, p->root);
        return;
    }
    give_blocks(p);
    copy_own(p);
    wait_for_all(p);
}

/* Each rank sends its block to the root, which receives n - 1 of them into dst. */
static void write_gather(plan *p)
{
    if (p->rank != p->root) {
        give_block(p, p->root);
        plan_wait(p, p->root, 0);
        return;
    }
    copy_own(p);
    get_blocks(p);
}

/* Step b = 0 .. n - 1: each rank sends block b of src to the root, which folds it from all ranks.
 * Each block is a fold of its own, as combining orders differ. */
static void write_reduce(plan *p)
{
    for (int block = 0; block < p->ranks; block++) {
        const int chunk = block * parts_of(p);
        if (p->rank == p->root)
            fold_chunks(p, chunk, parts_of(p));
        else
            plan_send(p, PLAN_SRC, chunk, parts_of(p), p->root, PLAN_WIRE);
    }
    if (p->rank != p->root)
        plan_wait(p, p->root, 0);
}

static void write_direct(plan *p, const plan_world *world)
{
    static void (*const parts[])(plan * p) = {
        [PLAN_ALL_REDUCE] = write_all_reduce, [PLAN_REDUCE_SCATTER] = write_reduce_scatter,
        [PLAN_ALL_GATHER] = write_exchange,   [PLAN_BROADCAST] = write_giving,
        [PLAN_REDUCE] = write_reduce,         [PLAN_GATHER] = write_gather,
        [PLAN_SCATTER] = write_giving,        [PLAN_ALL_TO_ALL] = write_exchange,
        [PLAN_BARRIER] = write_barrier,
    };
    (void)world;
    parts[p->collective](p);
}

/* No prefixes: in place, a rank would overwrite src that the ranks behind still read. */
bool algo_direct_supports(plan_collective collective)
{
    return algo_any_collective(collective) && !algo_is_prefix(collective);
}

int algo_direct_chunks(plan_collective collective, const plan_world *world, size_t bytes)
{
    (void)bytes;
    if (collective == PLAN_BROADCAST)
        return 1;
    return collective == PLAN_ALL_TO_ALL ? plan_blocks(collective, world->ranks) : world->ranks;
}

plan *algo_direct_build(const algo_call *call)
{
    return algo_build("direct", call, write_direct);
}
