/* SPDX-License-Identifier: Apache-2.0
 * Implements the parts that several algorithms share: checking a call, blocks and neighbours, and
 * pipelines of chunks. */
#include "algo_build.h"

bool algo_any_collective(plan_collective collective)
{
    return (unsigned)collective <= PLAN_BARRIER;
}

bool algo_shared_collective(plan_collective collective)
{
    return algo_any_collective(collective) && !plan_facts_of(collective)->personalized &&
           !algo_is_prefix(collective);
}

bool algo_is_prefix(plan_collective collective)
{
    return plan_facts_of(collective)->result == PLAN_PREFIX;
}

int algo_block_chunks(const plan *p)
{
    return p->chunks / plan_blocks(p->collective, p->ranks);
}

int algo_block(const plan *p, int from, int to)
{
    const plan_facts *facts = plan_facts_of(p->collective);
    int block = 0;
    if (facts->dst_blocks)
        block = from;
    if (facts->src_blocks)
        block = block * p->ranks + to;
    return block * algo_block_chunks(p);
}

int algo_neighbour(const plan *p, int steps)
{
    const int rank = (p->rank + steps) % p->ranks;
    return rank < 0 ? rank + p->ranks : rank;
}

void algo_fill(plan *p, int hops, int far)
{
    p->fill = hops;
    p->fill_far = far < hops ? far : hops;
}

/* Writes the plan of a single rank. A fold of one input finishes reductions (it divides an
 * average); other collectives copy. */
static void write_alone(plan *p)
{
    if (p->collective == PLAN_BARRIER || p->collective == PLAN_EXSCAN)
        return;
    if (!plan_facts_of(p->collective)->reduces) {
        plan_copy(p, PLAN_SRC, 0, PLAN_DST, 0, p->chunks);
        return;
    }
    plan_fold(p, 0, p->chunks);
    plan_fold_local(p, PLAN_SRC);
    plan_fold_into(p, PLAN_DST);
}

static ring_status check_call(const algo *self, const algo_call *call)
{
    const int ranks = call->world->ranks;
    if (!self->supports(call->collective))
        return fail(RING_ERR_UNSUPPORTED, "the algorithm %s does not support %s", self->name,
                    plan_collective_name(call->collective));
    if (ranks < 1 || call->rank < 0 || call->rank >= ranks || call->root < 0 || call->root >= ranks)
        return fail(RING_ERR_ARGUMENT, "%s: rank %d and root %d must be from 0 to %d", self->name,
                    call->rank, call->root, ranks - 1);
    const int unit = self->chunks(call->collective, call->world, 0);
    if (call->chunks < 1 || call->chunks % unit != 0)
        return fail(RING_ERR_ARGUMENT, "%s needs a multiple of %d chunk%s for %s, not %d",
                    self->name, unit, plural(unit), plan_collective_name(call->collective),
                    call->chunks);
    return RING_OK;
}

plan *algo_build(const char *name, const algo_call *call, algo_writer write)
{
    if (check_call(algo_find(name), call) != RING_OK)
        return NULL;
    plan *p = plan_new(call->collective, name, call->rank, call->world->ranks, call->root,
                       call->chunks);
    if (p == NULL)
        return NULL;
    p->rank_order = call->world->rank_order;
    if (p->ranks == 1)
        write_alone(p);
    else
        write(p, call->world);
    if (plan_seal(p) == RING_OK)
        return p;
    plan_free(p);
    return NULL;
}

/* ---- Pipelines of chunks --------------------------------------------------------- */

int algo_pipeline_chunks(size_t bytes)
{
    enum { MOST = 32, CHUNK_BYTES = 128 * 1024 }; /* more chunks gain nothing */
    const int chunks = (int)min_size(bytes / CHUNK_BYTES, MOST);
    return chunks > 1 ? chunks : 1;
}

void algo_each_chunk(plan *p, int times, algo_chunk_steps steps, const void *of, int chunk)
{
    plan_repeat(p, times, 1);
    if (times > 0)
        steps(p, of, chunk);
    plan_repeat(p, 1, 0);
}

/* First, chunks [0, first + lag) go up. Then, as long as there are chunks in both directions, one
 * chunk goes up and the chunk that went up lag steps earlier comes down. At the end, the remaining
 * chunks go up, and the remaining chunks come down. */
void algo_interleave(plan *p, algo_chunk_steps up, algo_chunk_steps down, const void *of, int first,
                     int count, int lag)
{
    const int chunks = p->chunks, begin = first + lag, end = begin + count;
    const int alone = begin < chunks ? begin : chunks;
    const int both = (end < chunks ? end : chunks) - alone;
    algo_each_chunk(p, alone, up, of, 0);
    plan_repeat(p, both, 1);
    if (both > 0) {
        up(p, of, alone);
        down(p, of, first);
    }
    algo_each_chunk(p, chunks - alone - both, up, of, alone + both);
    algo_each_chunk(p, count - both, down, of, first + both);
}

/* One hop of a chunk (count / chunks elements): rank r receives it from rank r - 1 into dst, and
 * sends it from there to rank r + 1. The root sends from src, and the rank before the root does not
 * send. */
static void pass_on(plan *p, const void *of, int chunk)
{
    const int next = algo_neighbour(p, 1);
    (void)of;
    if (p->rank == p->root)
        plan_send(p, PLAN_SRC, chunk, 1, next, PLAN_DST);
    else
        plan_recv(p, algo_neighbour(p, -1), PLAN_DST, chunk, 1);
    if (p->rank != p->root && next != p->root)
        plan_send(p, PLAN_DST, chunk, 1, next, PLAN_DST);
}

void algo_forward(plan *p, const plan_world *world)
{
    const int next = algo_neighbour(p, 1);
    algo_fill(p, p->ranks - 2, world->hosts - 1);
    algo_each_chunk(p, p->chunks, pass_on, NULL, 0);
    if (p->rank == p->root)
        plan_copy(p, PLAN_SRC, 0, PLAN_DST, 0, p->chunks);
    if (next != p->root)
        plan_wait(p, next, 0);
}
