/* SPDX-License-Identifier: Apache-2.0
 *
 * algo: pure functions from (collective, ranks, my rank, root, chunks) to a plan. To add
 * one: a file here and a line in algo_table (algo.c); it is then proven, priced, swept,
 * benchmarked and drawn like the others.
 */
#ifndef RING_ALGO_H
#define RING_ALGO_H

#include "plan.h"

/** Most inputs or outputs of one fold: what a kernel takes in one pass. This room does not see
 *  kernels.h; core, which sees both, compares them. */
enum { ALGO_MAX_OPERANDS = 64 };

typedef struct algo {
    const char *name;
    const char *about; /* one line for --help and docs */
    int max_ranks;     /* that one plan can serve; 0: any number */
    /** @return true if it can do @p collective. */
    bool (*supports)(plan_collective collective);
    /** Chunks that it wants for a call of @p bytes in all; depends on arguments alone. */
    int (*chunks)(plan_collective collective, int ranks, size_t bytes);
    /** Builds and seals the plan. @p chunks is any multiple of chunks(collective, ranks, 0).
     *  @return NULL, with fail() called, if out of memory or if asked for what it cannot do. */
    plan *(*build)(plan_collective collective, int ranks, int rank, int root, int chunks);
} algo;

/** @return the table, *count entries. */
const algo *algo_all(size_t *count);
/** @return the algorithm, NULL if unknown. */
const algo *algo_find(const char *name);

#endif
