/* SPDX-License-Identifier: Apache-2.0
 * Lists the algorithms in one table, which the tuner, the tests and the documents read. If several
 * algorithms have the same price, the tuner chooses the first. */
#include "algo_build.h"

#include <string.h>

#define BUILT_BY(algo) .chunks = algo##_chunks, .build = algo##_build

#define SET(collective) (1u << (collective))

/* The collectives whose plans may keep sums in scratch; all-gathers do not combine anything. */
enum { SUMS = SET(PLAN_ALL_REDUCE) | SET(PLAN_REDUCE_SCATTER) | SET(PLAN_REDUCE) };

static const algo table[] = {
    {.name = "oneshot",
     .supports = algo_any_collective,
     BUILT_BY(algo_oneshot),
     .max_ranks = ALGO_MAX_OPERANDS,
     .in_rank_order = true,
     .eager = true,
     .by_block = true,
     .about =
         "each rank sends its vector to every rank that needs it, and folds in rank order: one "
         "message per pair, for short calls"},
    {.name = "direct",
     .supports = algo_direct_supports,
     BUILT_BY(algo_direct),
     .max_ranks = ALGO_MAX_OPERANDS,
     .in_rank_order = true,
     .by_block = true,
     .about = "each rank folds its block from all ranks in one pass and stores it to all"},
    {.name = "ring",
     .supports = algo_shared_collective,
     BUILT_BY(algo_ring),
     .by_block = true,
     .about =
         "each rank exchanges with its neighbours only: equal load on all links, fewest bytes"},
    {.name = "halving",
     .supports = algo_halving_supports,
     BUILT_BY(algo_halving),
     .keeps_sums = SUMS,
     .about = "pairs exchange halves, quarters, ...: 2 log2 n messages, and few bytes"},
    {.name = "tree",
     .supports = algo_tree_supports,
     BUILT_BY(algo_tree),
     .about =
         "sums go up and results come down a binary tree of hosts and of each host's ranks: few "
         "hops"},
    {.name = "chain",
     .supports = algo_chain_supports,
     BUILT_BY(algo_chain),
     .keeps_sums = SET(PLAN_EXSCAN),
     .by_block = true,
     .in_rank_order = true,
     .about = "a pipeline from rank to rank, which combines sums in rank order for every size"},
    {.name = "hierarchical",
     .supports = algo_hierarchical_supports,
     BUILT_BY(algo_hierarchical),
     .keeps_sums = SUMS,
     .for_hosts = true,
     .about =
         "direct exchange among the ranks of a host, rings among hosts: each sum leaves a host "
         "once"},
};

const algo *algo_all(size_t *count)
{
    *count = sizeof table / sizeof *table;
    return table;
}

const algo *algo_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

bool algo_serves(const algo *a, plan_collective collective, const plan_world *world)
{
    const plan_facts *facts = plan_facts_of(collective);
    if (facts->uneven && (!a->by_block || (a->eager && facts->personalized)))
        return false; /* only two ranks know a block's length, so the others cannot
                         tell whether it fits into a link */
    return a->supports(plan_collective_planned(collective)) &&
           (a->max_ranks == 0 || world->ranks <= a->max_ranks || facts->personalized) &&
           (a->in_rank_order || !world->rank_order || !facts->reduces);
}
