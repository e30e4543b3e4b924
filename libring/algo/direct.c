/* SPDX-License-Identifier: Apache-2.0
 *
 * direct: everybody talks to everybody. Each rank folds its own block from all ranks'
 * buffers in one pass and puts the result into all of them in the same pass: N inputs, N
 * outputs, two meetings. Where links map memory nothing is copied on the way; where they do
 * not, it is still right, with more messages than the ring.
 *
 * Block b is combined in the ring's order b + 1, b + 2, ..., b: same bits. Each rank serves
 * the ranks behind it first and hears the ranks before it first, so that nobody crowds at
 * rank 0 and messages are taken in the order in which they come.
 */
#include "parts.h"

static int parts_of(const plan *p)
{
    return p->chunks / p->ranks;
}

/* Gives every peer chunk after chunk: its own block, or this rank's. */
static void send_blocks(plan *p, bool mine, plan_buffer to)
{
    for (int i = 1; i < p->ranks; i++) {
        const int peer = algo_neighbour(p, i);
        for (int k = 0; k < parts_of(p); k++)
            plan_send(p, PLAN_SRC, (mine ? p->rank : peer) * parts_of(p) + k, peer, to);
    }
}

static void recv_blocks(plan *p)
{
    for (int i = 1; i < p->ranks; i++) {
        const int peer = algo_neighbour(p, -i);
        for (int k = 0; k < parts_of(p); k++)
            plan_recv(p, peer, PLAN_DST, peer * parts_of(p) + k);
    }
}

/* Folds one chunk from all ranks, starting behind the block's number. */
static void fold_chunk(plan *p, int chunk)
{
    const int block = chunk / parts_of(p);
    plan_fold(p, true, PLAN_WIRE_DATA, PLAN_WIRE_DATA);
    for (int i = 1; i <= p->ranks; i++) {
        const int rank = (block + i) % p->ranks;
        plan_in(p, rank, rank == p->rank ? PLAN_SRC : PLAN_WIRE, chunk);
    }
    plan_out(p, p->rank, PLAN_DST, chunk);
}

static void fold_own_block(plan *p, bool store_to_all)
{
    for (int k = 0; k < parts_of(p); k++) {
        const int chunk = p->rank * parts_of(p) + k;
        fold_chunk(p, chunk);
        for (int i = 1; i < p->ranks && store_to_all; i++)
            plan_out(p, algo_neighbour(p, i), PLAN_DST, chunk);
    }
}

static void acknowledge_all(plan *p)
{
    for (int i = 1; i < p->ranks; i++)
        plan_ack(p, algo_neighbour(p, -i));
    for (int i = 1; i < p->ranks; i++)
        plan_wait_ack(p, algo_neighbour(p, i));
}

/* A peer's result tells that it has read what it was given: no acknowledgements. */
static void write_all_reduce(plan *p)
{
    send_blocks(p, false, PLAN_WIRE);
    fold_own_block(p, true);
    recv_blocks(p);
}

static void write_reduce_scatter(plan *p)
{
    send_blocks(p, false, PLAN_WIRE);
    fold_own_block(p, false);
    acknowledge_all(p);
}

static void write_all_gather(plan *p)
{
    send_blocks(p, true, PLAN_DST);
    for (int k = 0; k < parts_of(p); k++) {
        const int chunk = p->rank * parts_of(p) + k;
        plan_copy(p, PLAN_SRC, chunk, PLAN_DST, chunk);
    }
    recv_blocks(p);
    acknowledge_all(p);
}

static void write_barrier(plan *p)
{
    send_blocks(p, true, PLAN_DST);
    recv_blocks(p);
}

static void broadcast_from_root(plan *p)
{
    for (int i = 1; i < p->ranks; i++) {
        plan_repeat(p, p->chunks, 1);
        plan_send(p, PLAN_SRC, 0, algo_neighbour(p, i), PLAN_DST);
    }
    plan_repeat(p, p->chunks, 1);
    plan_copy(p, PLAN_SRC, 0, PLAN_DST, 0);
    plan_repeat(p, 1, 0);
    for (int i = 1; i < p->ranks; i++)
        plan_wait_ack(p, algo_neighbour(p, i));
}

static void write_broadcast(plan *p)
{
    if (p->rank == p->root) {
        broadcast_from_root(p);
        return;
    }
    plan_repeat(p, p->chunks, 1);
    plan_recv(p, p->root, PLAN_DST, 0);
    plan_repeat(p, 1, 0);
    plan_ack(p, p->root);
}

static void write_reduce(plan *p)
{
    if (p->rank == p->root) {
        for (int chunk = 0; chunk < p->chunks; chunk++)
            fold_chunk(p, chunk);
        for (int i = 1; i < p->ranks; i++)
            plan_ack(p, algo_neighbour(p, i));
        return;
    }
    plan_repeat(p, p->chunks, 1);
    plan_send(p, PLAN_SRC, 0, p->root, PLAN_WIRE);
    plan_repeat(p, 1, 0);
    plan_wait_ack(p, p->root);
}

static void write_direct(plan *p)
{
    switch (p->collective) {
    case PLAN_ALL_REDUCE:
        write_all_reduce(p);
        break;
    case PLAN_REDUCE_SCATTER:
        write_reduce_scatter(p);
        break;
    case PLAN_ALL_GATHER:
        write_all_gather(p);
        break;
    case PLAN_BROADCAST:
        write_broadcast(p);
        break;
    case PLAN_REDUCE:
        write_reduce(p);
        break;
    default:
        write_barrier(p);
    }
}

bool algo_direct_supports(plan_collective collective)
{
    return (unsigned)collective <= PLAN_BARRIER;
}

int algo_direct_chunks(plan_collective collective, int ranks, size_t bytes)
{
    (void)bytes;
    return collective == PLAN_BROADCAST ? 1 : ranks;
}

plan *algo_direct_build(plan_collective collective, int ranks, int rank, int root, int chunks)
{
    const algo_call call = {collective, ranks, rank, root, chunks};
    return algo_build("direct", call, write_direct);
}
