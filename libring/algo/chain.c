/* SPDX-License-Identifier: Apache-2.0
 *
 * chain: rank 0 to rank n - 1 and back, in a pipeline of chunks. Going up, each rank adds
 * its own, so the combining order is 0, 1, ..., n - 1 for every chunk, whatever the size and
 * however it is cut. All-reduce: finished chunks come down again while later ones still go
 * up. Reduce and reduce-scatter: the last rank gives each sum to the rank that it is for.
 *
 * Chunk c passes rank r on the way up in beat c + r; how many beats later it is back decides
 * how a rank's ups and downs interleave without anybody waiting in vain. Sums that are relayed
 * round a circle are awaited one beat earlier: the links on the way hold a chunk each, and
 * one of them must have room for the next chunk.
 */
#include "parts.h"

typedef struct line {
    plan *p;
    int last; /* the highest rank */
} line;

/* A step or two about one chunk. */
typedef void (*chunk_steps)(const line *l, int chunk);

static void repeat_steps(const line *l, int times, chunk_steps steps, int chunk)
{
    plan_repeat(l->p, times, 1);
    if (times > 0)
        steps(l, chunk);
}

/* Ups of all chunks; downs of chunks [first, first + count), each @p lag beats behind its up. */
static void interleave(const line *l, chunk_steps up, chunk_steps down, int first, int count,
                       int lag)
{
    const int chunks = l->p->chunks, begin = first + lag, end = begin + count;
    const int alone = begin < chunks ? begin : chunks;
    const int both = (end < chunks ? end : chunks) - alone;
    repeat_steps(l, alone, up, 0);
    repeat_steps(l, both, up, alone);
    if (both > 0)
        down(l, first);
    repeat_steps(l, chunks - alone - both, up, alone + both);
    repeat_steps(l, count - both, down, first + both);
    plan_repeat(l->p, 1, 0);
}

/* ---- Up ------------------------------------------------------------------------ */

static void begin_fold(const line *l, bool finish, int chunk)
{
    const int rank = l->p->rank;
    plan_fold(l->p, finish, rank == 1 ? PLAN_WIRE_DATA : PLAN_WIRE_ACC, PLAN_WIRE_ACC);
    plan_in(l->p, rank - 1, PLAN_WIRE, chunk);
    plan_in(l->p, rank, PLAN_SRC, chunk);
}

static void up_to(const line *l, int chunk, int to)
{
    if (l->p->rank == 0) {
        plan_send(l->p, PLAN_SRC, chunk, to, PLAN_WIRE);
        return;
    }
    begin_fold(l, false, chunk);
    plan_out(l->p, to, PLAN_WIRE, chunk);
}

static void up(const line *l, int chunk)
{
    up_to(l, chunk, l->p->rank + 1);
}

static void finish_here(const line *l, int chunk)
{
    begin_fold(l, true, chunk);
    plan_out(l->p, l->p->rank, PLAN_DST, chunk);
}

/* ---- Back ---------------------------------------------------------------------- */

static void down(const line *l, int chunk)
{
    const int rank = l->p->rank;
    plan_recv(l->p, rank + 1, PLAN_DST, chunk);
    if (rank > 0)
        plan_send(l->p, PLAN_DST, chunk, rank - 1, PLAN_DST);
}

static void turn_round(const line *l, int chunk)
{
    finish_here(l, chunk);
    plan_send(l->p, PLAN_DST, chunk, l->p->rank - 1, PLAN_DST);
}

static void take_sum(const line *l, int chunk)
{
    plan_fold(l->p, true, PLAN_WIRE_ACC, PLAN_WIRE_ACC);
    plan_in(l->p, l->last, PLAN_WIRE, chunk);
    plan_out(l->p, l->p->rank, PLAN_DST, chunk);
}

/* ---- Collectives --------------------------------------------------------------- */

static void write_all_reduce(const line *l)
{
    const int rank = l->p->rank;
    l->p->fill = 2 * l->last - 1;
    if (rank == l->last)
        repeat_steps(l, l->p->chunks, turn_round, 0);
    else
        interleave(l, up, down, 0, l->p->chunks, 2 * (l->last - rank));
    if (l->p->collective == PLAN_BARRIER)
        return;
    plan_repeat(l->p, 1, 0);
    if (rank < l->last)
        plan_ack(l->p, rank + 1);
    if (rank > 0)
        plan_wait_ack(l->p, rank - 1);
}

/* Only rank 0 sends from a buffer, so only it needs to know when that was read. */
static void acknowledge_rank_0(const line *l)
{
    plan_repeat(l->p, 1, 0);
    if (l->p->rank == 1)
        plan_ack(l->p, 0);
    if (l->p->rank == 0)
        plan_wait_ack(l->p, 1);
}

static void give_to_root(const line *l, int chunk)
{
    up_to(l, chunk, l->p->root);
}

/* The last rank passes sums on to ranks that still pass up what it waits for: a circle. */
static bool sums_come_back(const plan *p)
{
    const bool to_another = p->collective == PLAN_REDUCE_SCATTER || p->root != p->ranks - 1;
    return p->ranks > 2 && to_another;
}

static void write_reduce(const line *l)
{
    const plan *p = l->p;
    l->p->circular = sums_come_back(p);
    l->p->fill = p->root == l->last ? l->last - 1 : l->last;
    if (p->rank == l->last)
        repeat_steps(l, p->chunks, p->root == l->last ? finish_here : give_to_root, 0);
    else if (p->rank == p->root)
        interleave(l, up, take_sum, 0, p->chunks, l->last - p->rank);
    else
        repeat_steps(l, p->chunks, up, 0);
    if (p->root != 0) /* else the sums that come back tell */
        acknowledge_rank_0(l);
}

/* The last rank gives block after block to its owner. */
static void scatter(const line *l)
{
    const int parts = l->p->chunks / l->p->ranks;
    for (int owner = 0; owner < l->last; owner++) {
        plan_repeat(l->p, parts, 1);
        up_to(l, owner * parts, owner);
    }
    repeat_steps(l, parts, finish_here, l->last * parts);
}

static void write_reduce_scatter(const line *l)
{
    const plan *p = l->p;
    const int parts = p->chunks / p->ranks;
    l->p->circular = sums_come_back(p);
    l->p->fill = l->last;
    if (p->rank == l->last)
        scatter(l);
    else
        interleave(l, up, take_sum, p->rank * parts, parts, l->last - p->rank);
    acknowledge_rank_0(l);
}

static void write_chain(plan *p)
{
    const line l = {.p = p, .last = p->ranks - 1};
    switch (p->collective) {
    case PLAN_BROADCAST:
        algo_forward(p);
        break;
    case PLAN_REDUCE:
        write_reduce(&l);
        break;
    case PLAN_REDUCE_SCATTER:
        write_reduce_scatter(&l);
        break;
    default: /* all-reduce, or a barrier: one of no elements */
        write_all_reduce(&l);
    }
}

bool algo_chain_supports(plan_collective collective)
{
    return (unsigned)collective <= PLAN_BARRIER && collective != PLAN_ALL_GATHER;
}

/* Chunks of 128 KiB fill the pipeline and still amortise a message; more than 32 do not pay. */
int algo_chain_chunks(plan_collective collective, int ranks, size_t bytes)
{
    enum { MOST = 32, CHUNK_BYTES = 128 * 1024 };
    const int unit = collective == PLAN_REDUCE_SCATTER ? ranks : 1;
    if (collective == PLAN_BARRIER)
        return 1;
    const size_t wanted = min_size(bytes / CHUNK_BYTES, MOST);
    const int units = (int)wanted / unit;
    return units > 1 ? units * unit : unit;
}

plan *algo_chain_build(plan_collective collective, int ranks, int rank, int root, int chunks)
{
    const algo_call call = {collective, ranks, rank, root, chunks};
    return algo_build("chain", call, write_chain);
}
