/* SPDX-License-Identifier: Apache-2.0
 * What is known of a collective by its name alone. */
#include "plan.h"

static const char *const names[PLAN_COLLECTIVE_COUNT] = {
    [PLAN_ALL_REDUCE] = "all_reduce", [PLAN_REDUCE_SCATTER] = "reduce_scatter",
    [PLAN_ALL_GATHER] = "all_gather", [PLAN_BROADCAST] = "broadcast",
    [PLAN_REDUCE] = "reduce",         [PLAN_BARRIER] = "barrier",
    [PLAN_SEND] = "send",             [PLAN_RECV] = "recv",
};

const char *plan_collective_name(plan_collective collective)
{
    return (unsigned)collective < PLAN_COLLECTIVE_COUNT ? names[collective] : "?";
}

static bool has_blocks(plan_collective collective)
{
    return collective == PLAN_REDUCE_SCATTER || collective == PLAN_ALL_GATHER;
}

int plan_blocks(plan_collective collective, int ranks)
{
    return has_blocks(collective) ? ranks : 1;
}

double plan_bus_factor(plan_collective collective, int ranks)
{
    const double others = (ranks - 1) / (double)ranks;
    if (collective == PLAN_ALL_REDUCE)
        return 2 * others;
    return has_blocks(collective) ? others : 1;
}

bool plan_reduces(plan_collective collective)
{
    return collective == PLAN_ALL_REDUCE || collective == PLAN_REDUCE_SCATTER ||
           collective == PLAN_REDUCE;
}
