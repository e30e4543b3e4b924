/* SPDX-License-Identifier: Apache-2.0
 *
 * The builder: appends steps, operands and blocks, then seals. Steps of a block lie next to
 * each other, operands of a step too, so appending is all it does.
 */
#include "plan.h"

#include <stdlib.h>

plan *plan_new(plan_collective collective, const char *algorithm, int rank, int ranks, int root,
               int chunks)
{
    plan *p = calloc(1, sizeof *p);
    if (p == NULL) {
        fail(RING_ERR_MEMORY, "building a plan for %d ranks", ranks);
        return NULL;
    }
    p->collective = collective;
    p->algorithm = algorithm;
    p->rank = rank;
    p->ranks = ranks;
    p->root = root;
    p->chunks = chunks;
    plan_repeat(p, 1, 0);
    return p;
}

void plan_free(plan *p)
{
    if (p == NULL)
        return;
    free(p->steps);
    free(p->locs);
    free(p->blocks);
    free(p->sends); /* the four counts are one allocation */
    free(p);
}

/* Makes room for one more element. @return false, remembered, if there is none. */
static bool room_for_one(plan *p, void **array, int32_t count, int32_t *cap, size_t element)
{
    if (p->failed)
        return false;
    if (count < *cap)
        return true;
    const int64_t wanted = *cap > 0 ? 2 * (int64_t)*cap : 8;
    void *grown = wanted <= INT32_MAX ? realloc(*array, (size_t)wanted * element) : NULL;
    if (grown == NULL) {
        p->failed = true;
        return false;
    }
    *array = grown;
    *cap = (int32_t)wanted;
    return true;
}

void plan_repeat(plan *p, int times, int stride)
{
    void *blocks = p->blocks;
    if (!room_for_one(p, &blocks, p->block_count, &p->block_cap, sizeof *p->blocks))
        return;
    p->blocks = blocks;
    p->blocks[p->block_count++] = (plan_block){.first = p->step_count,
                                               .times = times > 0 ? times : 0,
                                               .stride = stride};
}

static void add_step(plan *p, plan_step step)
{
    void *steps = p->steps;
    if (!room_for_one(p, &steps, p->step_count, &p->step_cap, sizeof *p->steps))
        return;
    p->steps = steps;
    step.first_in = step.first_out = p->loc_count;
    p->steps[p->step_count++] = step;
    p->blocks[p->block_count - 1].steps++;
}

static bool add_loc(plan *p, int rank, plan_buffer buffer, int chunk)
{
    void *locs = p->locs;
    if (!room_for_one(p, &locs, p->loc_count, &p->loc_cap, sizeof *p->locs))
        return false;
    p->locs = locs;
    p->locs[p->loc_count++] = (plan_loc){.rank = rank, .chunk = chunk, .buffer = buffer};
    return true;
}

/* Inputs come before outputs, so an input moves the place where the outputs begin. */
void plan_in(plan *p, int rank, plan_buffer buffer, int chunk)
{
    if (!add_loc(p, rank, buffer, chunk))
        return;
    plan_step *step = &p->steps[p->step_count - 1];
    step->ins++;
    step->first_out++;
}

void plan_out(plan *p, int rank, plan_buffer buffer, int chunk)
{
    if (add_loc(p, rank, buffer, chunk))
        p->steps[p->step_count - 1].outs++;
}

void plan_send(plan *p, plan_buffer from, int chunk, int peer, plan_buffer to)
{
    add_step(p, (plan_step){.kind = PLAN_STEP_SEND});
    plan_in(p, p->rank, from, chunk);
    plan_out(p, peer, to, chunk);
}

void plan_recv(plan *p, int peer, plan_buffer to, int chunk)
{
    add_step(p, (plan_step){.kind = PLAN_STEP_RECV});
    plan_in(p, peer, to, chunk);
    plan_out(p, p->rank, to, chunk);
}

void plan_copy(plan *p, plan_buffer from, int from_chunk, plan_buffer to, int to_chunk)
{
    add_step(p, (plan_step){.kind = PLAN_STEP_COPY});
    plan_in(p, p->rank, from, from_chunk);
    plan_out(p, p->rank, to, to_chunk);
}

void plan_fold(plan *p, bool finish, plan_wire wire_in, plan_wire wire_out)
{
    add_step(p, (plan_step){.kind = PLAN_STEP_FOLD, .finish = finish, .wire_in = wire_in,
                            .wire_out = wire_out});
}

void plan_ack(plan *p, int peer)
{
    add_step(p, (plan_step){.kind = PLAN_STEP_ACK});
    plan_out(p, peer, PLAN_WIRE, 0);
}

void plan_wait_ack(plan *p, int peer)
{
    add_step(p, (plan_step){.kind = PLAN_STEP_WAIT_ACK});
    plan_in(p, peer, PLAN_WIRE, 0);
}

void plan_step_like(plan *p, const plan_step *step)
{
    add_step(p, (plan_step){.kind = step->kind, .finish = step->finish, .wire_in = step->wire_in,
                            .wire_out = step->wire_out});
}

/* ---- Sealing ------------------------------------------------------------------- */

static void drop_idle_blocks(plan *p)
{
    int32_t kept = 0;
    for (int32_t b = 0; b < p->block_count; b++)
        if (p->blocks[b].steps > 0 && p->blocks[b].times > 0)
            p->blocks[kept++] = p->blocks[b];
    p->block_count = kept;
}

static void count_step(plan *p, const plan_step *step, int32_t times)
{
    int32_t *in = step->kind == PLAN_STEP_WAIT_ACK ? p->acks_in : p->recvs;
    int32_t *out = step->kind == PLAN_STEP_ACK ? p->acks_out : p->sends;
    for (int32_t i = 0; i < step->ins; i++) {
        const int32_t peer = p->locs[step->first_in + i].rank;
        if (peer != p->rank)
            in[peer] += times;
    }
    for (int32_t i = 0; i < step->outs; i++) {
        const int32_t peer = p->locs[step->first_out + i].rank;
        if (peer != p->rank)
            out[peer] += times;
    }
}

static void count_messages(plan *p)
{
    for (int32_t b = 0; b < p->block_count; b++) {
        const plan_block *block = &p->blocks[b];
        for (int32_t s = 0; s < block->steps; s++)
            count_step(p, &p->steps[block->first + s], block->times);
    }
}

ring_status plan_seal(plan *p)
{
    const size_t ranks = (size_t)p->ranks;
    int32_t *counts = p->failed ? NULL : calloc(4 * ranks, sizeof *counts);
    if (counts == NULL)
        return fail(RING_ERR_MEMORY, "building the plan of %s by %s for %d ranks",
                    plan_collective_name(p->collective), p->algorithm, p->ranks);
    p->sends = counts;
    p->recvs = counts + ranks;
    p->acks_out = counts + 2 * ranks;
    p->acks_in = counts + 3 * ranks;
    drop_idle_blocks(p);
    count_messages(p);
    return RING_OK;
}
