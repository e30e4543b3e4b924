/* SPDX-License-Identifier: Apache-2.0
 *
 * halving: implements recursive halving, followed by recursive doubling. Messages halve (and later
 * double) from step to step, so a rank sends only 2 log2 n of them, and no more bytes than on the
 * ring.
 *
 * 2^k ranks take part. If there are more, 2 r of them form r pairs, and the spare of a pair sends
 * its vector to the other rank before the algorithm and receives the result after it. A rank that
 * takes part is a node; nodes are numbered in rank order. Node i exchanges with nodes i ^ 1, then
 * i ^ 2, then i ^ 4, and so on. So near ranks, which are mostly on one host, exchange the large
 * halves. The sum of the lower node is always the left operand, so every chunk is combined in rank
 * order, neighbours first: ((0 1) (2 3)) ((4 5) (6 7)).
 */
#include "algo_build.h"

typedef struct cube {
    plan *p;
    int nodes; /* 2^k                                         */
    int pairs; /* nodes 0 .. pairs - 1 have a spare           */
    int node;  /* the node of this rank                       */
    int spare; /* the spare rank of this node; -1 if it has none */
} cube;

static int nodes_of(int ranks)
{
    int nodes = 1;
    while (2 * nodes <= ranks)
        nodes *= 2;
    return nodes;
}

/* @return the rank of a node; the node's spare is the next rank. */
static int rank_of(const cube *c, int node)
{
    return node < c->pairs ? 2 * node : node + c->pairs;
}

static cube cube_of(plan *p)
{
    cube c = {.p = p, .nodes = nodes_of(p->ranks), .spare = -1};
    c.pairs = p->ranks - c.nodes;
    const bool paired = p->rank < 2 * c.pairs;
    c.node = paired ? p->rank / 2 : p->rank - c.pairs;
    if (paired && p->rank % 2 == 0)
        c.spare = p->rank + 1;
    return c;
}

/* ---- All-reduce ---------------------------------------------------------------- */

/* Finds the range that a node still sums before it exchanges with node ^ bit. After log2(bit)
 * halvings it has chunks / bit chunks. */
static void range_before(const cube *c, int bit, int *chunk, int *chunks)
{
    *chunk = 0;
    *chunks = c->p->chunks;
    for (int done = 1; done < bit; done *= 2) {
        *chunks /= 2;
        *chunk += c->node & done ? *chunks : 0;
    }
}

/* In a halving step the node sends the half of its range that the peer keeps (chunks / (2 bit)
 * chunks), and folds the peer's message into its own half. The last step writes to dst. */
static void halve(const cube *c, int bit)
{
    const int peer = rank_of(c, c->node ^ bit);
    const bool upper = c->node & bit, first = bit == 1;
    const plan_buffer sum = first && c->spare < 0 ? PLAN_SRC : PLAN_SCRATCH;
    const bool plain = first && (c->node ^ bit) >= c->pairs;
    int chunk, chunks;
    range_before(c, bit, &chunk, &chunks);
    chunks /= 2;
    plan_send(c->p, sum, chunk + (upper ? 0 : chunks), chunks, peer, PLAN_WIRE);
    plan_fold(c->p, chunk + (upper ? chunks : 0), chunks);
    if (!upper)
        plan_fold_local(c->p, sum);
    plan_fold_message(c->p, peer, plain ? PLAN_WIRE_DATA : PLAN_WIRE_ACC);
    if (upper)
        plan_fold_local(c->p, sum);
    plan_fold_into(c->p, 2 * bit == c->nodes ? PLAN_DST : PLAN_SCRATCH);
}

/* In a doubling step the node sends the finished half of the range, and receives the other half. */
static void exchange_halves(const cube *c, int bit)
{
    const int peer = rank_of(c, c->node ^ bit);
    const bool upper = c->node & bit;
    int chunk, chunks;
    range_before(c, bit, &chunk, &chunks);
    chunks /= 2;
    plan_send(c->p, PLAN_DST, chunk + (upper ? chunks : 0), chunks, peer, PLAN_DST);
    plan_recv(c->p, peer, PLAN_DST, chunk + (upper ? 0 : chunks), chunks);
}

/* With n' nodes and S elements, messages have S / 2, S / 4, ..., S / n' elements while halving, and
 * then S / n', ..., S / 2 elements while doubling. */
static void all_reduce(const cube *c)
{
    if (c->spare >= 0) {
        plan_fold(c->p, 0, c->p->chunks);
        plan_fold_local(c->p, PLAN_SRC);
        plan_fold_message(c->p, c->spare, PLAN_WIRE_DATA);
        plan_fold_into(c->p, PLAN_SCRATCH);
    }
    for (int bit = 1; bit < c->nodes; bit *= 2)
        halve(c, bit);
    for (int bit = c->nodes / 2; bit > 0; bit /= 2)
        exchange_halves(c, bit);
}

/* ---- All-gather, barrier ------------------------------------------------------- */

/* Finds the blocks of nodes [node, node + count) and of their spares. */
static void blocks_of(const cube *c, int node, int count, int *chunk, int *chunks)
{
    const int parts = c->p->chunks / c->p->ranks, end = node + count;
    *chunk = rank_of(c, node) * parts;
    *chunks = (end < c->nodes ? rank_of(c, end) : c->p->ranks) * parts - *chunk;
}

/* In step k (bit = 2^k) the node has the blocks of `bit` nodes, from node & -bit on. It sends them
 * to node ^ bit, and receives that node's blocks. */
static void all_gather(const cube *c)
{
    const int parts = c->p->chunks / c->p->ranks, own = c->p->rank * parts;
    plan_copy(c->p, PLAN_SRC, own, PLAN_DST, own, parts);
    if (c->spare >= 0)
        plan_recv(c->p, c->spare, PLAN_DST, c->spare * parts, parts);
    for (int bit = 1; bit < c->nodes; bit *= 2) {
        const int peer = rank_of(c, c->node ^ bit), first = c->node & -bit;
        int chunk, chunks;
        blocks_of(c, first, bit, &chunk, &chunks);
        plan_send(c->p, PLAN_DST, chunk, chunks, peer, PLAN_DST);
        blocks_of(c, first ^ bit, bit, &chunk, &chunks);
        plan_recv(c->p, peer, PLAN_DST, chunk, chunks);
    }
}

/* ---- Collectives --------------------------------------------------------------- */

/* A spare sends its vector, or block, to its node, and receives the result. */
static void write_spare(const cube *c)
{
    plan *p = c->p;
    const int node = p->rank - 1, parts = p->chunks / plan_blocks(p->collective, p->ranks);
    const bool sums = p->collective == PLAN_ALL_REDUCE;
    plan_send(p, PLAN_SRC, sums ? 0 : p->rank * parts, parts, node, sums ? PLAN_WIRE : PLAN_DST);
    plan_recv(p, node, PLAN_DST, 0, p->chunks);
}

static void write_halving(plan *p, const plan_world *world)
{
    const cube c = cube_of(p);
    (void)world;
    if (rank_of(&c, c.node) != p->rank) {
        write_spare(&c);
        return;
    }
    if (c.spare < 0) /* otherwise this rank's own messages include those of a spare */
        algo_fill(p, c.pairs > 0 ? 2 : 0, 0);
    p->fill_chunks = p->chunks;
    if (p->collective == PLAN_ALL_REDUCE)
        all_reduce(&c);
    else
        all_gather(&c);
    if (c.spare >= 0)
        plan_send(p, PLAN_DST, 0, p->chunks, c.spare, PLAN_DST);
    /* No later message of the peers proves that they have taken the last messages. */
    for (int bit = 1; bit < c.nodes; bit *= 2)
        plan_wait(p, rank_of(&c, c.node ^ bit), 0);
    if (c.spare >= 0)
        plan_wait(p, c.spare, 0);
}

bool algo_halving_supports(plan_collective collective)
{
    return collective == PLAN_ALL_REDUCE || collective == PLAN_ALL_GATHER;
}

int algo_halving_chunks(plan_collective collective, const plan_world *world, size_t bytes)
{
    (void)bytes;
    return collective == PLAN_ALL_GATHER ? world->ranks : nodes_of(world->ranks);
}

plan *algo_halving_build(const algo_call *call)
{
    return algo_build("halving", call, write_halving);
}
