/* SPDX-License-Identifier: Apache-2.0
 * The cursor: walks a sealed plan with its blocks unrolled. */
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

/* A sealed plan has no block without steps or rounds, so no more than one carry each. */
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

int64_t plan_length(const plan *p)
{
    int64_t length = 0;
    for (int32_t b = 0; b < p->block_count; b++)
        length += (int64_t)p->blocks[b].steps * p->blocks[b].times;
    return length;
}
