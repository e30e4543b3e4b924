/* SPDX-License-Identifier: Apache-2.0
 * The table of algorithms. Where prices are equal, the tuner takes the first. */
#include "algo_build.h"

#include <string.h>

#define BUILT_BY(algo) .chunks = algo##_chunks, .build = algo##_build

static const algo table[] = {
    {.name = "oneshot",
     .supports = algo_any_collective,
     BUILT_BY(algo_oneshot),
     .max_ranks = ALGO_MAX_OPERANDS,
     .eager = true,
     .about = "each rank sends all it has to whoever needs it and folds in rank order: one "
              "meeting, for short calls"},
    {.name = "direct",
     .supports = algo_any_collective,
     BUILT_BY(algo_direct),
     .max_ranks = ALGO_MAX_OPERANDS,
     .about = "each rank folds its block from all ranks in one pass and stores it to all"},
    {.name = "ring",
     .supports = algo_any_collective,
     BUILT_BY(algo_ring),
     .about = "neighbours only, the same load on every link; fewest bytes"},
    {.name = "halving",
     .supports = algo_halving_supports,
     BUILT_BY(algo_halving),
     .keeps_sums = true,
     .about = "pairs exchange halves, quarters, ...: 2 log2 n messages, and few bytes"},
    {.name = "tree",
     .supports = algo_tree_supports,
     BUILT_BY(algo_tree),
     .about = "sums up, results down a binary tree of hosts and of each host's ranks: few hops"},
    {.name = "chain",
     .supports = algo_chain_supports,
     BUILT_BY(algo_chain),
     .about = "a pipeline in rank order; sums combined in rank order for every size"},
    {.name = "hierarchical",
     .supports = algo_hierarchical_supports,
     BUILT_BY(algo_hierarchical),
     .keeps_sums = true,
     .for_hosts = true,
     .about = "direct among the ranks of a host, rings among hosts: each sum leaves a host once"},
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
