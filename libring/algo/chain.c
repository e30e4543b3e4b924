/* SPDX-License-Identifier: Apache-2.0
 *
 * chain: sends chunks from rank 0 to rank n - 1 and back, in a pipeline. On the way up each rank
 * adds its own data, so the combining order is 0, 1, ..., n - 1 for every chunk, at every size and
 * number of chunks. In an all-reduce, finished chunks come down while later ones still go up. In a
 * reduce or reduce-scatter, the last rank sends each sum to the rank that needs it. In a scan or
 * exscan, each rank keeps the sums that go up through it.
 *
 * Chunk c passes rank r on the way up at time c + r, counted in hops. It returns to the rank after
 * a fixed number of hops, and so many up steps precede the first down step, so that the rank never
 * waits idly. Sums that are relayed round a circle are awaited one hop earlier: each link of the
 * circle holds a chunk, and one link must have room for the next chunk.
 */
#include "algo_build.h"

static int last_of(const plan *p)
{
    return p->ranks - 1;
}

/* ---- Up ------------------------------------------------------------------------ */

static void begin_fold(plan *p, int chunk)
{
    plan_fold(p, chunk, 1);
    plan_fold_message(p, p->rank - 1, p->rank == 1 ? PLAN_WIRE_DATA : PLAN_WIRE_ACC);
    plan_fold_local(p, PLAN_SRC);
}

/* One chunk of count / chunks elements goes up: rank 0 sends its src to rank 1; rank r receives the
 * sum of ranks 0 .. r - 1 from rank r - 1, adds its src, and relays the sum to rank r + 1. */
static void up_to(plan *p, int chunk, int to)
{
    if (p->rank == 0) {
        plan_send(p, PLAN_SRC, chunk, 1, to, PLAN_WIRE);
        return;
    }
    begin_fold(p, chunk);
    plan_fold_to(p, to, PLAN_WIRE);
}

static void up(plan *p, const void *of, int chunk)
{
    (void)of;
    up_to(p, chunk, p->rank + 1);
}

/* Rank n - 1 completes the sum in dst. */
static void finish_here(plan *p, const void *of, int chunk)
{
    (void)of;
    begin_fold(p, chunk);
    plan_fold_into(p, PLAN_DST);
}

/* ---- Back ---------------------------------------------------------------------- */

/* A finished chunk comes down: rank r receives it from rank r + 1 into dst, and sends it on to rank
 * r - 1. */
static void down(plan *p, const void *of, int chunk)
{
    (void)of;
    plan_recv(p, p->rank + 1, PLAN_DST, chunk, 1);
    if (p->rank > 0)
        plan_send(p, PLAN_DST, chunk, 1, p->rank - 1, PLAN_DST);
}

/* Rank n - 1 completes the sum, and sends it back to rank n - 2. */
static void finish_and_return(plan *p, const void *of, int chunk)
{
    finish_here(p, of, chunk);
    plan_send(p, PLAN_DST, chunk, 1, p->rank - 1, PLAN_DST);
}

/* Takes the sum of all ranks from rank n - 1 into dst. */
static void take_sum(plan *p, const void *of, int chunk)
{
    (void)of;
    plan_fold(p, chunk, 1);
    plan_fold_message(p, last_of(p), PLAN_WIRE_ACC);
    plan_fold_into(p, PLAN_DST);
}

/* ---- Collectives --------------------------------------------------------------- */

static void write_all_reduce(plan *p, const plan_world *world)
{
    algo_fill(p, 2 * last_of(p) - 1, 2 * (world->hosts - 1));
    if (p->rank == last_of(p))
        algo_each_chunk(p, p->chunks, finish_and_return, NULL, 0);
    else
        algo_interleave(p, up, down, NULL, 0, p->chunks, 2 * (last_of(p) - p->rank));
    if (p->rank > 0 && p->collective != PLAN_BARRIER)
        plan_wait(p, p->rank - 1, 0);
}

static void give_to_root(plan *p, const void *of, int chunk)
{
    (void)of;
    up_to(p, chunk, p->root);
}

/* @return true if the plan is circular: rank n - 1 sends sums to a rank that is still sending
 * partial sums up, for which rank n - 1 waits. */
static bool sums_come_back(const plan *p)
{
    const bool to_another = p->collective == PLAN_REDUCE_SCATTER || p->root != last_of(p);
    return p->ranks > 2 && to_another;
}

/* Only rank 0 sends from a buffer, so only rank 0 must wait until its chunks have been taken. A
 * reduce to rank 0 needs no wait, because the sums that return prove it. */
static void wait_for_rank_1(plan *p)
{
    if (p->rank == 0)
        plan_wait(p, 1, 0);
}

static void write_reduce(plan *p, const plan_world *world)
{
    const int hops = p->root == last_of(p) ? last_of(p) - 1 : last_of(p);
    p->circular = sums_come_back(p);
    algo_fill(p, hops, world->hosts);
    if (p->rank == last_of(p))
        algo_each_chunk(p, p->chunks, p->root == p->rank ? finish_here : give_to_root, NULL, 0);
    else if (p->rank == p->root)
        algo_interleave(p, up, take_sum, NULL, 0, p->chunks, last_of(p) - p->rank);
    else
        algo_each_chunk(p, p->chunks, up, NULL, 0);
    if (p->root != 0)
        wait_for_rank_1(p);
}

/* The last rank sends the sum of each block (chunks / n chunks) to the block's owner. */
static void scatter(plan *p)
{
    const int parts = p->chunks / p->ranks;
    for (int owner = 0; owner < last_of(p); owner++) {
        plan_repeat(p, parts, 1);
        up_to(p, owner * parts, owner);
    }
    algo_each_chunk(p, parts, finish_here, NULL, last_of(p) * parts);
}

static void write_reduce_scatter(plan *p, const plan_world *world)
{
    const int parts = p->chunks / p->ranks;
    p->circular = sums_come_back(p);
    algo_fill(p, last_of(p), world->hosts);
    if (p->rank == last_of(p))
        scatter(p);
    else
        algo_interleave(p, up, take_sum, NULL, p->rank * parts, parts, last_of(p) - p->rank);
    wait_for_rank_1(p);
}

/* ---- Prefixes ------------------------------------------------------------------ */

/* Scan: rank r receives the sum of ranks 0 .. r - 1 from rank r - 1, adds its src, and writes the
 * sum to dst and to rank r + 1. */
static void scan_chunk(plan *p, const void *of, int chunk)
{
    (void)of;
    plan_fold(p, chunk, 1);
    if (p->rank > 0)
        plan_fold_message(p, p->rank - 1, PLAN_WIRE_ACC);
    plan_fold_local(p, PLAN_SRC);
    plan_fold_into(p, PLAN_DST);
    if (p->rank < last_of(p))
        plan_fold_to(p, p->rank + 1, PLAN_WIRE);
}

/* Writes the sum of ranks 0 .. r - 1, without this rank's src, to a buffer. */
static void fold_before(plan *p, int chunk, plan_buffer into)
{
    plan_fold(p, chunk, 1);
    plan_fold_message(p, p->rank - 1, p->rank == 1 ? PLAN_WIRE_DATA : PLAN_WIRE_ACC);
    plan_fold_into(p, into);
}

/* Exscan: rank r writes the sum of ranks 0 .. r - 1 to dst, and sends that sum plus its src to rank
 * r + 1. The sum is kept in scratch meanwhile, because in place dst overwrites src. */
static void exscan_chunk(plan *p, const void *of, int chunk)
{
    (void)of;
    if (p->rank == 0) {
        plan_send(p, PLAN_SRC, chunk, 1, 1, PLAN_WIRE);
    } else if (p->rank == last_of(p)) {
        fold_before(p, chunk, PLAN_DST);
    } else {
        fold_before(p, chunk, PLAN_SCRATCH);
        plan_fold(p, chunk, 1);
        plan_fold_local(p, PLAN_SCRATCH);
        plan_fold_local(p, PLAN_SRC);
        plan_fold_to(p, p->rank + 1, PLAN_WIRE);
        plan_fold(p, chunk, 1);
        plan_fold_local(p, PLAN_SCRATCH);
        plan_fold_into(p, PLAN_DST);
    }
}

static void write_chain(plan *p, const plan_world *world)
{
    switch (p->collective) {
    case PLAN_BROADCAST:
        algo_forward(p, world);
        break;
    case PLAN_REDUCE:
        write_reduce(p, world);
        break;
    case PLAN_REDUCE_SCATTER:
        write_reduce_scatter(p, world);
        break;
    case PLAN_SCAN:
        algo_fill(p, last_of(p) - 1, world->hosts - 1);
        algo_each_chunk(p, p->chunks, scan_chunk, NULL, 0);
        break;
    case PLAN_EXSCAN:
        algo_fill(p, last_of(p) - 1, world->hosts - 1);
        algo_each_chunk(p, p->chunks, exscan_chunk, NULL, 0);
        wait_for_rank_1(p);
        break;
    default: /* all-reduce; or a barrier, which is an all-reduce of no elements */
        write_all_reduce(p, world);
    }
}

bool algo_chain_supports(plan_collective collective)
{
    return (algo_shared_collective(collective) && collective != PLAN_ALL_GATHER) ||
           algo_is_prefix(collective);
}

int algo_chain_chunks(plan_collective collective, const plan_world *world, size_t bytes)
{
    const int blocks = plan_blocks(collective, world->ranks);
    const int chunks = collective == PLAN_BARRIER ? 1 : algo_pipeline_chunks(bytes);
    return chunks > blocks ? chunks / blocks * blocks : blocks;
}

plan *algo_chain_build(const algo_call *call)
{
    return algo_build("chain", call, write_chain);
}
