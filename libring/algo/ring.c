/* SPDX-License-Identifier: Apache-2.0
 *
 * ring: lets every rank send to the next rank and receive from the previous one, so that all links
 * carry the same load at the same time. The vector has one block for each rank, of K chunks each.
 *
 * In a reduce-scatter, block b starts at rank b + 1 and goes round to rank b. Each rank on the way
 * adds its own data, so the combining order is b + 1, b + 2, ..., b. In an all-gather, the finished
 * blocks go round. An all-reduce does both, with 2 (n - 1) messages per rank for K = 1, each of 1/n
 * of the vector; no algorithm can send fewer bytes.
 *
 * Hops are repeated steps whose chunks move one block back in each round, so a plan has O(K) steps
 * for any number of ranks. The K chunks of the blocks go round one after the other, because
 * together they would exceed the room of links.
 */
#include "algo_build.h"

/* The chunks that go round the ring together: one chunk of each block. */
typedef struct circle {
    plan *p;
    int parts, part; /* K; the number of the chunk in its block */
    int previous, next;
} circle;

/* @return the chunk of the block that is @p back blocks before this rank's own. */
static int chunk_at(const circle *c, int back)
{
    return algo_neighbour(c->p, -back) * c->parts + c->part;
}

/* ---- Reduce-scatter ------------------------------------------------------------ */

/* In the first hop the message is the data of one rank; in later hops it is a sum in the
 * accumulator's type. */
static void begin_fold(const circle *c, int hop, int chunk)
{
    plan_fold(c->p, chunk, 1);
    plan_fold_message(c->p, c->previous, hop == 1 ? PLAN_WIRE_DATA : PLAN_WIRE_ACC);
    plan_fold_local(c->p, PLAN_SRC);
}

static void add_and_pass_on(const circle *c, int hop, int times)
{
    plan_repeat(c->p, times, -c->parts);
    begin_fold(c, hop, chunk_at(c, hop + 1));
    plan_fold_to(c->p, c->next, PLAN_WIRE);
}

/* In step k = 0 .. n - 2, rank r sends a chunk of block r - 1 - k to rank r + 1: in step 0 from
 * src, and later the sum that it received from rank r - 1 plus its own src. Messages have count /
 * (n K) elements. */
static void start_and_pass_on(const circle *c)
{
    const int hops = c->p->ranks - 1;
    plan_send(c->p, PLAN_SRC, chunk_at(c, 1), 1, c->next, PLAN_WIRE);
    if (hops > 1)
        add_and_pass_on(c, 1, 1);
    if (hops > 2)
        add_and_pass_on(c, 2, hops - 2);
    plan_repeat(c->p, 1, 0);
}

/* In step n - 1, block r has gone round, and rank r completes it in dst. */
static void reduce_scatter(const circle *c)
{
    start_and_pass_on(c);
    begin_fold(c, c->p->ranks - 1, chunk_at(c, 0));
    plan_fold_into(c->p, PLAN_DST);
}

/* ---- All-gather ---------------------------------------------------------------- */

/* In step k = 1 .. n - 1, rank r receives a chunk of block r - k from rank r - 1 into dst. It sends
 * each of them on to rank r + 1, except the last chunk, which is of block r + 1. */
static void gather(const circle *c)
{
    plan_repeat(c->p, c->p->ranks - 2, -c->parts);
    plan_recv(c->p, c->previous, PLAN_DST, chunk_at(c, 1), 1);
    plan_send(c->p, PLAN_DST, chunk_at(c, 1), 1, c->next, PLAN_DST);
    plan_repeat(c->p, 1, 0);
    plan_recv(c->p, c->previous, PLAN_DST, chunk_at(c, -1), 1);
}

static void all_gather(const circle *c)
{
    const int own = chunk_at(c, 0);
    plan_send(c->p, PLAN_SRC, own, 1, c->next, PLAN_DST);
    plan_copy(c->p, PLAN_SRC, own, PLAN_DST, own, 1);
    gather(c);
}

static void all_reduce(const circle *c)
{
    reduce_scatter(c);
    plan_send(c->p, PLAN_DST, chunk_at(c, 0), 1, c->next, PLAN_DST);
    gather(c);
}

/* ---- Others -------------------------------------------------------------------- */

/* After a reduce-scatter, every rank relays the sum of its block to the root, which writes the sums
 * to dst. */
static void reduce(const circle *c)
{
    if (c->p->rank == c->p->root) {
        reduce_scatter(c);
        for (int i = 1; i < c->p->ranks; i++) {
            const int owner = algo_neighbour(c->p, i);
            plan_fold(c->p, owner * c->parts + c->part, 1);
            plan_fold_message(c->p, owner, PLAN_WIRE_ACC);
            plan_fold_into(c->p, PLAN_DST);
        }
        return;
    }
    start_and_pass_on(c);
    begin_fold(c, c->p->ranks - 1, chunk_at(c, 0));
    plan_fold_to(c->p, c->p->root, PLAN_WIRE);
}

/* A barrier is an all-gather of no elements: after n - 1 hops, a message from every rank has
 * reached each rank. */
static void barrier(const circle *c)
{
    plan_send(c->p, PLAN_SRC, chunk_at(c, 0), 1, c->next, PLAN_DST);
    gather(c);
}

static void write_ring(plan *p, const plan_world *world)
{
    static void (*const parts[])(const circle *c) = {
        [PLAN_ALL_REDUCE] = all_reduce, [PLAN_REDUCE_SCATTER] = reduce_scatter,
        [PLAN_ALL_GATHER] = all_gather, [PLAN_REDUCE] = reduce,
        [PLAN_BARRIER] = barrier,
    };
    if (p->collective == PLAN_BROADCAST) {
        algo_forward(p, world);
        return;
    }
    circle c = {.p = p,
                .parts = p->chunks / p->ranks,
                .previous = algo_neighbour(p, -1),
                .next = algo_neighbour(p, 1)};
    p->circular = p->ranks > 2 && plan_facts_of(p->collective)->reduces;
    for (; c.part < c.parts; c.part++)
        parts[p->collective](&c);
    /* The root of a reduce need not wait: the sums prove that all its chunks have been taken. */
    if (p->collective != PLAN_BARRIER && !(p->collective == PLAN_REDUCE && p->rank == p->root))
        plan_wait(p, c.next, 0);
}

int algo_ring_chunks(plan_collective collective, const plan_world *world, size_t bytes)
{
    (void)collective;
    (void)bytes;
    return world->ranks;
}

plan *algo_ring_build(const algo_call *call)
{
    return algo_build("ring", call, write_ring);
}
