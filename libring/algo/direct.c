/* SPDX-License-Identifier: Apache-2.0
 *
 * direct: lets every rank exchange data with every other rank. Each rank folds its own block from
 * all ranks' buffers and writes the result to all of them, in one pass with n inputs and n outputs
 * and with two messages for each pair. If links map memory, no byte is copied on the way; other
 * links need more messages than the ring.
 *
 * Block b is combined in the ring's order b + 1, b + 2, ..., b, which gives the same bits as the
 * ring, or in the order of ranks if the world requires it. Each rank begins to send at the rank
 * after it, and to receive at the rank before it. So ranks do not all use rank 0 at the same time,
 * and messages are taken in the order of their arrival.
 */
#include "algo_build.h"

static int parts_of(const plan *p)
{
    return p->chunks / p->ranks;
}

/* Sends a block (count / n elements) to every peer: this rank's block, or the peer's. */
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

/* Folds a block, or chunks of a block, from all ranks into dst. It begins at the rank after the
 * block's number, or at rank 0 if the order of ranks is required. */
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

/* Waits until all peers have taken their messages, because the peers send no answers that would
 * prove it. */
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

/* In step i = 1 .. n - 1, rank r sends the block for rank r + i from its src to that rank's dst. */
static void give_blocks(plan *p)
{
    for (int i = 1; i < p->ranks; i++)
        give_block(p, algo_neighbour(p, i));
}

/* In step i = 1 .. n - 1, rank r receives the block of rank r - i into dst. */
static void get_blocks(plan *p)
{
    for (int i = 1; i < p->ranks; i++)
        get_block(p, algo_neighbour(p, -i));
}

/* Rank r (1) sends each peer the peer's block of src, (2) folds block r from all ranks and writes
 * the result to the dst of all ranks, and (3) receives the other blocks. No waits are needed,
 * because a peer's result proves that the peer has read its block. */
static void write_all_reduce(plan *p)
{
    send_blocks(p, false, PLAN_WIRE);
    fold_chunks(p, p->rank * parts_of(p), parts_of(p));
    for (int i = 1; i < p->ranks; i++)
        plan_fold_to(p, algo_neighbour(p, i), PLAN_DST);
    recv_blocks(p);
}

/* Rank r sends each peer the peer's block of src, and folds block r from all ranks into dst. */
static void write_reduce_scatter(plan *p)
{
    send_blocks(p, false, PLAN_WIRE);
    fold_chunks(p, p->rank * parts_of(p), parts_of(p));
    wait_for_all(p);
}

/* In an all-gather or all-to-all, each rank sends a block to each peer and receives a block from
 * each. */
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

/* The root sends count elements (broadcast) or the rank's block (scatter) to each rank. */
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

/* Each rank sends its block to the root, which receives n - 1 blocks into dst. */
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

/* In step b = 0 .. n - 1, each rank sends block b of src to the root, which folds it from all
 * ranks. Each block needs a separate fold, because the combining orders differ. */
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

/* Prefixes are not supported: in a call in place, a rank would overwrite its src while higher ranks
 * still read it. */
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
