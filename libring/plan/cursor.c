/* SPDX-License-Identifier: Apache-2.0
 * Reads sealed plans: a cursor unrolls the blocks of a plan step by step, and its peers are found
 * by rank. */
#include "plan.h"

plan_cursor plan_begin(const plan *p)
{
    return (plan_cursor){.plan = p};
}

const plan_step *plan_at(const plan_cursor *cursor)
{
    const plan *p = cursor->plan;
    if (cursor->block == p->block_count)
        return NULL;
    return &p->steps[p->blocks[cursor->block].first + cursor->step];
}

/* A sealed plan has no empty blocks, so the step and the round are carried over at most once
 * each. */
void plan_next(plan_cursor *cursor)
{
    const plan_block *block = &cursor->plan->blocks[cursor->block];
    if (++cursor->step < block->steps)
        return;
    cursor->step = 0;
    if (++cursor->round < block->times)
        return;
    cursor->round = 0;
    cursor->block++;
}

static plan_loc loc_in_round(const plan_cursor *cursor, int32_t index)
{
    const plan *p = cursor->plan;
    plan_loc loc = p->locs[index];
    if (cursor->round == 0)
        return loc;
    const int64_t shift = (int64_t)cursor->round * p->blocks[cursor->block].stride;
    const int64_t chunk = (loc.chunk + shift) % p->chunks;
    loc.chunk = (int32_t)(chunk < 0 ? chunk + p->chunks : chunk);
    return loc;
}

plan_loc plan_input(const plan_cursor *cursor, const plan_step *step, int i)
{
    return loc_in_round(cursor, step->first_in + i);
}

plan_loc plan_output(const plan_cursor *cursor, const plan_step *step, int i)
{
    return loc_in_round(cursor, step->first_out + i);
}

/* @return true if a local output of the fold keeps the result, finished or not as asked. */
static bool keeps(const plan *p, const plan_step *step, bool finished)
{
    for (int32_t i = 0; i < step->outs; i++) {
        const plan_loc *out = &p->locs[step->first_out + i];
        if (out->rank == p->rank && out->finish == finished)
            return true;
    }
    return false;
}

bool plan_relays(const plan_cursor *cursor, const plan_step *step, int i)
{
    const plan *p = cursor->plan;
    const plan_loc *out = &p->locs[step->first_out + i];
    return step->kind == PLAN_STEP_FOLD && out->rank != p->rank && !keeps(p, step, out->finish);
}

int64_t plan_length(const plan *p)
{
    int64_t length = 0;
    for (int32_t b = 0; b < p->block_count; b++)
        length += (int64_t)p->blocks[b].steps * p->blocks[b].times;
    return length;
}

const plan_peer *plan_peer_of(const plan *p, int rank)
{
    int32_t low = 0, high = p->peer_count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (p->peers[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->peer_count && p->peers[low].rank == rank ? &p->peers[low] : NULL;
}
