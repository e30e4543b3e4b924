/* SPDX-License-Identifier: Apache-2.0
 * Describes each collective in one table, and looks up its facts. Planning, checking, layout and
 * pricing of a collective all follow from its row. */
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
    [PLAN_GATHER] = {.name = "gather",
                     .rooted = true,
                     .dst_blocks = true,
                     .personalized = true,
                     .src_at = PLAN_EVERYWHERE,
                     .dst_at = PLAN_ROOT,
                     .in_place = PLAN_SRC_IS_BLOCK_OF_DST,
                     .result = PLAN_OWNERS,
                     .bus_shares = 1},
    [PLAN_SCATTER] = {.name = "scatter",
                      .rooted = true,
                      .src_blocks = true,
                      .personalized = true,
                      .src_at = PLAN_ROOT,
                      .dst_at = PLAN_EVERYWHERE,
                      .in_place = PLAN_DST_IS_BLOCK_OF_SRC,
                      .result = PLAN_ROOTS,
                      .bus_shares = 1},
    [PLAN_ALL_TO_ALL] = {.name = "all_to_all",
                         .src_blocks = true,
                         .dst_blocks = true,
                         .personalized = true,
                         .src_at = PLAN_EVERYWHERE,
                         .dst_at = PLAN_EVERYWHERE,
                         .result = PLAN_OWNERS,
                         .bus_shares = 1},
    [PLAN_SCAN] = {.name = "scan",
                   .reduces = true,
                   .src_at = PLAN_EVERYWHERE,
                   .dst_at = PLAN_EVERYWHERE,
                   .in_place = PLAN_SAME,
                   .result = PLAN_PREFIX},
    [PLAN_EXSCAN] = {.name = "exscan",
                     .reduces = true,
                     .src_at = PLAN_EVERYWHERE,
                     .dst_at = PLAN_BUT_FIRST,
                     .in_place = PLAN_SAME,
                     .result = PLAN_PREFIX},
    [PLAN_BARRIER] = {.name = "barrier"},
    [PLAN_SEND] = {.name = "send", .pairwise = true, .src_at = PLAN_EVERYWHERE},
    [PLAN_RECV] = {.name = "recv", .pairwise = true, .dst_at = PLAN_EVERYWHERE},
    [PLAN_ALL_GATHER_V] = {.name = "all_gather_v",
                           .uneven = true,
                           .even = PLAN_ALL_GATHER,
                           .dst_blocks = true,
                           .src_at = PLAN_EVERYWHERE,
                           .dst_at = PLAN_EVERYWHERE,
                           .in_place = PLAN_SRC_IS_BLOCK_OF_DST,
                           .result = PLAN_OWNERS,
                           .bus_shares = 1},
    [PLAN_REDUCE_SCATTER_V] = {.name = "reduce_scatter_v",
                               .uneven = true,
                               .even = PLAN_REDUCE_SCATTER,
                               .reduces = true,
                               .src_blocks = true,
                               .src_at = PLAN_EVERYWHERE,
                               .dst_at = PLAN_EVERYWHERE,
                               .in_place = PLAN_DST_IS_BLOCK_OF_SRC,
                               .result = PLAN_SUM,
                               .bus_shares = 1},
    [PLAN_ALL_TO_ALL_V] = {.name = "all_to_all_v",
                           .uneven = true,
                           .even = PLAN_ALL_TO_ALL,
                           .src_blocks = true,
                           .dst_blocks = true,
                           .personalized = true,
                           .src_at = PLAN_EVERYWHERE,
                           .dst_at = PLAN_EVERYWHERE,
                           .result = PLAN_OWNERS,
                           .bus_shares = 1},
    [PLAN_GATHER_V] = {.name = "gather_v",
                       .uneven = true,
                       .even = PLAN_GATHER,
                       .rooted = true,
                       .dst_blocks = true,
                       .personalized = true,
                       .src_at = PLAN_EVERYWHERE,
                       .dst_at = PLAN_ROOT,
                       .in_place = PLAN_SRC_IS_BLOCK_OF_DST,
                       .result = PLAN_OWNERS,
                       .bus_shares = 1},
    [PLAN_SCATTER_V] = {.name = "scatter_v",
                        .uneven = true,
                        .even = PLAN_SCATTER,
                        .rooted = true,
                        .src_blocks = true,
                        .personalized = true,
                        .src_at = PLAN_ROOT,
                        .dst_at = PLAN_EVERYWHERE,
                        .in_place = PLAN_DST_IS_BLOCK_OF_SRC,
                        .result = PLAN_ROOTS,
                        .bus_shares = 1},
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

plan_collective plan_collective_planned(plan_collective collective)
{
    const plan_facts *facts = plan_facts_of(collective);
    return facts->uneven ? facts->even : collective;
}

int plan_blocks(plan_collective collective, int ranks)
{
    const plan_facts *facts = plan_facts_of(collective);
    return (facts->src_blocks ? ranks : 1) * (facts->dst_blocks ? ranks : 1);
}

bool plan_is_on(plan_side side, int rank, int root)
{
    return side == PLAN_EVERYWHERE || (side == PLAN_ROOT && rank == root) ||
           (side == PLAN_BUT_FIRST && rank > 0);
}

int plan_combined_ranks(plan_collective collective, int rank, int ranks)
{
    const plan_facts *facts = plan_facts_of(collective);
    if (facts->result != PLAN_PREFIX)
        return ranks;
    return facts->dst_at == PLAN_BUT_FIRST ? rank : rank + 1;
}

double plan_bus_factor(plan_collective collective, int ranks)
{
    const int shares = plan_facts_of(collective)->bus_shares;
    return shares > 0 ? shares * (ranks - 1) / (double)ranks : 1;
}
