/* SPDX-License-Identifier: Apache-2.0
 * The table of collectives, and what follows from it. */
#include "plan.h"

#include <string.h>

static const plan_facts table[PLAN_COLLECTIVE_COUNT] = {
    [PLAN_ALL_REDUCE] = {.name = "all_reduce",
                         .reduces = true,
                         .src_at = PLAN_EVERYWHERE,
                         .dst_at = PLAN_EVERYWHERE,
                         .in_place = PLAN_SAME,
                         .result = PLAN_SUM,
                         .bus_shares = 2},
    [PLAN_REDUCE_SCATTER] = {.name = "reduce_scatter",
                             .reduces = true,
                             .src_blocks = true,
                             .src_at = PLAN_EVERYWHERE,
                             .dst_at = PLAN_EVERYWHERE,
                             .in_place = PLAN_DST_IS_BLOCK_OF_SRC,
                             .result = PLAN_SUM,
                             .bus_shares = 1},
    [PLAN_ALL_GATHER] = {.name = "all_gather",
                         .dst_blocks = true,
                         .src_at = PLAN_EVERYWHERE,
                         .dst_at = PLAN_EVERYWHERE,
                         .in_place = PLAN_SRC_IS_BLOCK_OF_DST,
                         .result = PLAN_OWNERS,
                         .bus_shares = 1},
    [PLAN_BROADCAST] = {.name = "broadcast",
                        .rooted = true,
                        .src_at = PLAN_ROOT,
                        .dst_at = PLAN_EVERYWHERE,
                        .in_place = PLAN_SAME,
                        .result = PLAN_ROOTS},
    [PLAN_REDUCE] = {.name = "reduce",
                     .reduces = true,
                     .rooted = true,
                     .src_at = PLAN_EVERYWHERE,
                     .dst_at = PLAN_ROOT,
                     .in_place = PLAN_SAME,
                     .result = PLAN_SUM},
    [PLAN_BARRIER] = {.name = "barrier"},
    [PLAN_SEND] = {.name = "send", .pairwise = true, .src_at = PLAN_EVERYWHERE},
    [PLAN_RECV] = {.name = "recv", .pairwise = true, .dst_at = PLAN_EVERYWHERE},
};

const plan_facts *plan_facts_of(plan_collective collective)
{
    return (unsigned)collective < PLAN_COLLECTIVE_COUNT ? &table[collective] : NULL;
}

const char *plan_collective_name(plan_collective collective)
{
    const plan_facts *facts = plan_facts_of(collective);
    return facts != NULL ? facts->name : "?";
}

plan_collective plan_collective_find(const char *name)
{
    int found = 0;
    while (found < PLAN_COLLECTIVE_COUNT && strcmp(table[found].name, name) != 0)
        found++;
    return (plan_collective)found;
}

int plan_blocks(plan_collective collective, int ranks)
{
    const plan_facts *facts = plan_facts_of(collective);
    return facts->src_blocks || facts->dst_blocks ? ranks : 1;
}

double plan_bus_factor(plan_collective collective, int ranks)
{
    const int shares = plan_facts_of(collective)->bus_shares;
    return shares > 0 ? shares * (ranks - 1) / (double)ranks : 1;
}
