/* SPDX-License-Identifier: Apache-2.0
 *
 * ring: every rank sends to the next and takes from the previous one, so all links carry
 * the same load at the same time. The vector has one block a rank, of K chunks each.
 *
 * Reduce-scatter: block b starts at rank b + 1 and goes round to rank b; each rank on the
 * way adds its own, so the combining order is b + 1, b + 2, ..., b. All-gather: the finished
 * blocks go round once more. All-reduce is both: 2 (n - 1) messages a rank for K = 1, each
 * of 1/n of the vector, which no other algorithm can beat in bytes.
 *
 * Each hop is a repeated block of steps whose chunks move one block back a round, so a plan
 * has O(K) steps for any number of ranks.
 */
#include "parts.h"

typedef struct circle {
    plan *p;
    int parts; /* K, chunks a block */
    int previous, next;
} circle;

static circle circle_of(plan *p)
{
    return (circle){.p = p, .parts = p->chunks / p->ranks, .previous = algo_neighbour(p, -1),
                    .next = algo_neighbour(p, 1)};
}

/* Chunk k of the block @p back blocks before this rank's own. */
static int chunk_at(const circle *c, int back, int k)
{
    return algo_neighbour(c->p, -back) * c->parts + k;
}

/* ---- Reduce-scatter ------------------------------------------------------------ */

/* The first hop brings plain data, the later ones sums in the accumulator's type. */
static plan_wire wire_of_hop(int hop)
{
    return hop == 1 ? PLAN_WIRE_DATA : PLAN_WIRE_ACC;
}

static void begin_fold(const circle *c, bool finish, int hop, int chunk)
{
    plan_fold(c->p, finish, wire_of_hop(hop), PLAN_WIRE_ACC);
    plan_in(c->p, c->previous, PLAN_WIRE, chunk);
    plan_in(c->p, c->p->rank, PLAN_SRC, chunk);
}

static void add_and_pass_on(const circle *c, int hop, int times)
{
    plan_repeat(c->p, times, -c->parts);
    for (int k = 0; k < c->parts; k++) {
        const int chunk = chunk_at(c, hop + 1, k);
        begin_fold(c, false, hop, chunk);
        plan_out(c->p, c->next, PLAN_WIRE, chunk);
    }
}

/* All hops but the last, which finishes this rank's own block. */
static void start_and_pass_on(const circle *c)
{
    const int hops = c->p->ranks - 1;
    for (int k = 0; k < c->parts; k++)
        plan_send(c->p, PLAN_SRC, chunk_at(c, 1, k), c->next, PLAN_WIRE);
    if (hops > 1)
        add_and_pass_on(c, 1, 1);
    if (hops > 2)
        add_and_pass_on(c, 2, hops - 2);
    plan_repeat(c->p, 1, 0);
}

static void finish_chunk(const circle *c, int k)
{
    const int chunk = chunk_at(c, 0, k);
    begin_fold(c, true, c->p->ranks - 1, chunk);
    plan_out(c->p, c->p->rank, PLAN_DST, chunk);
}

static void write_reduce_scatter(const circle *c)
{
    start_and_pass_on(c);
    for (int k = 0; k < c->parts; k++)
        finish_chunk(c, k);
    algo_acknowledge(c->p, c->previous, c->next);
}

/* ---- All-gather ---------------------------------------------------------------- */

/* Takes the blocks of all others; the last one is not passed on. */
static void gather(const circle *c)
{
    plan_repeat(c->p, c->p->ranks - 2, -c->parts);
    for (int k = 0; k < c->parts; k++) {
        plan_recv(c->p, c->previous, PLAN_DST, chunk_at(c, 1, k));
        plan_send(c->p, PLAN_DST, chunk_at(c, 1, k), c->next, PLAN_DST);
    }
    plan_repeat(c->p, 1, 0);
    for (int k = 0; k < c->parts; k++)
        plan_recv(c->p, c->previous, PLAN_DST, chunk_at(c, -1, k));
}

static void write_all_gather(const circle *c)
{
    for (int k = 0; k < c->parts; k++)
        plan_send(c->p, PLAN_SRC, chunk_at(c, 0, k), c->next, PLAN_DST);
    for (int k = 0; k < c->parts; k++)
        plan_copy(c->p, PLAN_SRC, chunk_at(c, 0, k), PLAN_DST, chunk_at(c, 0, k));
    gather(c);
    algo_acknowledge(c->p, c->previous, c->next);
}

static void write_all_reduce(const circle *c)
{
    start_and_pass_on(c);
    for (int k = 0; k < c->parts; k++) {
        finish_chunk(c, k);
        plan_send(c->p, PLAN_DST, chunk_at(c, 0, k), c->next, PLAN_DST);
    }
    gather(c);
    algo_acknowledge(c->p, c->previous, c->next);
}

/* ---- Others -------------------------------------------------------------------- */

/* The block's last hop on the ring, but the sum goes to the root, which finishes it. */
static void add_and_give_to_root(const circle *c)
{
    for (int k = 0; k < c->parts; k++) {
        const int chunk = chunk_at(c, 0, k);
        begin_fold(c, false, c->p->ranks - 1, chunk);
        plan_out(c->p, c->p->root, PLAN_WIRE, chunk);
    }
}

static void take_block(const circle *c, int owner)
{
    for (int k = 0; k < c->parts; k++) {
        const int chunk = owner * c->parts + k;
        plan_fold(c->p, true, PLAN_WIRE_ACC, PLAN_WIRE_ACC);
        plan_in(c->p, owner, PLAN_WIRE, chunk);
        plan_out(c->p, c->p->rank, PLAN_DST, chunk);
    }
}

static void write_reduce(const circle *c)
{
    start_and_pass_on(c);
    if (c->p->rank == c->p->root) {
        for (int k = 0; k < c->parts; k++)
            finish_chunk(c, k);
        for (int i = 1; i < c->p->ranks; i++)
            take_block(c, algo_neighbour(c->p, i));
    } else {
        add_and_give_to_root(c);
    }
    if (c->previous != c->p->root) /* the sums tell the root that its chunks were read */
        plan_ack(c->p, c->previous);
    if (c->p->rank != c->p->root)
        plan_wait_ack(c->p, c->next);
}

/* An all-gather of no elements: after n - 1 hops each rank has heard of all. */
static void write_barrier(const circle *c)
{
    for (int k = 0; k < c->parts; k++)
        plan_send(c->p, PLAN_SRC, chunk_at(c, 0, k), c->next, PLAN_DST);
    gather(c);
}

static void write_ring(plan *p)
{
    const circle c = circle_of(p);
    p->circular = p->ranks > 2 && plan_reduces(p->collective);
    switch (p->collective) {
    case PLAN_ALL_REDUCE:
        write_all_reduce(&c);
        break;
    case PLAN_REDUCE_SCATTER:
        write_reduce_scatter(&c);
        break;
    case PLAN_ALL_GATHER:
        write_all_gather(&c);
        break;
    case PLAN_BROADCAST:
        algo_forward(p);
        break;
    case PLAN_REDUCE:
        write_reduce(&c);
        break;
    default:
        write_barrier(&c);
    }
}

bool algo_ring_supports(plan_collective collective)
{
    return (unsigned)collective <= PLAN_BARRIER;
}

int algo_ring_chunks(plan_collective collective, int ranks, size_t bytes)
{
    (void)collective;
    (void)bytes;
    return ranks;
}

plan *algo_ring_build(plan_collective collective, int ranks, int rank, int root, int chunks)
{
    const algo_call call = {collective, ranks, rank, root, chunks};
    return algo_build("ring", call, write_ring);
}
