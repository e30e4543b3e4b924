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
#include "algo_build.h"

static int parts_of(const plan *p)
{
    return p->chunks / p->ranks;
}

/* Gives every peer a block: its own, or this rank's. */
static void send_blocks(plan *p, bool mine, plan_buffer to)
{
    for (int i = 1; i < p->ranks; i++) {
        const int peer = algo_neighbour(p, i);
        plan_send(p, PLAN_SRC, (mine ? p->rank : peer) * parts_of(p), parts_of(p), peer, to);
    }
}

static void recv_blocks(plan *p)
{
    for (int i = 1; i < p->ranks; i++) {
        const int peer = algo_neighbour(p, -i);
        plan_recv(p, peer, PLAN_DST, peer * parts_of(p), parts_of(p));
    }
}

/* Folds a block, or chunks of one, from all ranks, starting behind its number. */
static void fold_chunks(plan *p, int chunk, int chunks)
{
    const int block = chunk / parts_of(p);
    plan_fold(p, chunk, chunks);
    for (int i = 1; i <= p->ranks; i++) {
        const int rank = (block + i) % p->ranks;
        if (rank == p->rank)
            plan_fold_local(p, PLAN_SRC);
        else
            plan_fold_message(p, rank, PLAN_WIRE_DATA);
    }
    plan_fold_into(p, PLAN_DST);
}

static void wait_for_all(plan *p)
{
    for (int i = 1; i < p->ranks; i++)
        plan_wait(p, algo_neighbour(p, i), 0);
}

/* A peer's result tells that it has read what it was given: no waits. */
static void write_all_reduce(plan *p)
{
    send_blocks(p, false, PLAN_WIRE);
    fold_chunks(p, p->rank * parts_of(p), parts_of(p));
    for (int i = 1; i < p->ranks; i++)
        plan_fold_to(p, algo_neighbour(p, i), PLAN_DST);
    recv_blocks(p);
}

static void write_reduce_scatter(plan *p)
{
    send_blocks(p, false, PLAN_WIRE);
    fold_chunks(p, p->rank * parts_of(p), parts_of(p));
    wait_for_all(p);
}

static void write_all_gather(plan *p)
{
    const int own = p->rank * parts_of(p);
    send_blocks(p, true, PLAN_DST);
    plan_copy(p, PLAN_SRC, own, PLAN_DST, own, parts_of(p));
    recv_blocks(p);
    wait_for_all(p);
}

static void write_barrier(plan *p)
{
    send_blocks(p, true, PLAN_DST);
    recv_blocks(p);
}

static void write_broadcast(plan *p)
{
    if (p->rank != p->root) {
        plan_recv(p, p->root, PLAN_DST, 0, p->chunks);
        return;
    }
    for (int i = 1; i < p->ranks; i++)
        plan_send(p, PLAN_SRC, 0, p->chunks, algo_neighbour(p, i), PLAN_DST);
    plan_copy(p, PLAN_SRC, 0, PLAN_DST, 0, p->chunks);
    wait_for_all(p);
}

/* Blocks are combined in other orders, so each is a fold and a message of its own. */
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
        [PLAN_ALL_GATHER] = write_all_gather, [PLAN_BROADCAST] = write_broadcast,
        [PLAN_REDUCE] = write_reduce,         [PLAN_BARRIER] = write_barrier,
    };
    (void)world;
    parts[p->collective](p);
}

int algo_direct_chunks(plan_collective collective, const plan_world *world, size_t bytes)
{
    (void)bytes;
    return collective == PLAN_BROADCAST ? 1 : world->ranks;
}

plan *algo_direct_build(const algo_call *call)
{
    return algo_build("direct", call, write_direct);
}
