/* SPDX-License-Identifier: Apache-2.0
 * The table of algorithms. Where prices are equal, the tuner takes the first. */
#include "parts.h"

#include <string.h>

static const algo table[] = {
    {"direct", "each rank folds its block from all ranks in one pass and stores it to all",
     ALGO_MAX_OPERANDS, algo_direct_supports, algo_direct_chunks, algo_direct_build},
    {"ring", "neighbours only, the same load on every link; fewest bytes", 0, algo_ring_supports,
     algo_ring_chunks, algo_ring_build},
    {"chain", "a pipeline in rank order; sums combined in rank order for every size", 0,
     algo_chain_supports, algo_chain_chunks, algo_chain_build},
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
