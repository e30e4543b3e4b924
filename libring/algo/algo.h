/* SPDX-License-Identifier: Apache-2.0
 *
 * algo: pure functions from (collective, the world as every rank knows it, this rank) to a plan. To
 * add one: a file here and a line in the table (algo.c); it is then proven, priced, swept,
 * benchmarked and drawn like the others.
 */
#ifndef RING_ALGO_H
#define RING_ALGO_H

#include "plan.h"

/** Most inputs or outputs of one fold: those of a kernel's pass. This room does not include
 *  kernels.h; core, which includes both, compares them. */
enum { ALGO_MAX_OPERANDS = 64 };

typedef struct algo_call {
    plan_collective collective;
    const plan_world *world;
    int32_t rank, root, chunks;
} algo_call;

typedef struct algo {
    const char *name;
    const char *about; /* one line for --help and docs */
    int max_ranks;     /* that one plan can serve; 0: any number, as for personalized collectives */
    /** @return true if it can do @p collective. */
    bool (*supports)(plan_collective collective);
    /** Chunks for a call of @p bytes in all; depends on arguments alone. */
    int (*chunks)(plan_collective collective, const plan_world *world, size_t bytes);
    /** Builds and seals the plan; call->chunks is any multiple of chunks(collective, world, 0).
     *  @return NULL, with fail() called, if out of memory or if asked for what it cannot do. */
    plan *(*build)(const algo_call *call);
    uint32_t keeps_sums; /* collectives whose plans may have scratch (a bit for each
                            plan_collective): their long calls are sliced on every rank */
    bool eager;          /* plans send whole vectors eagerly: long calls are sliced likewise */
    bool in_rank_order;  /* every element is combined in rank order, where the world asks for it */
    bool by_block;  /* operands, sums too, lie in one block each: blocks may have any lengths */
    bool for_hosts; /* not to be chosen on one host: other algorithms do the same there */
} algo;

/** @return the table, *count entries. */
const algo *algo_all(size_t *count);
/** @return the algorithm, NULL if unknown. */
const algo *algo_find(const char *name);

/** @return true if @p a can do @p collective among the ranks of @p world, in the order that it asks
 *  for. */
bool algo_serves(const algo *a, plan_collective collective, const plan_world *world);

/** Price of a call by @p a: the highest of some ranks, which stand for the classes of ranks.
 *  call->rank does not matter.
 *  @param[out] seconds  HUGE_VAL if the algorithm cannot do it, or must not because it would send
 *                       more than eager_max.
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status algo_price(const algo *a, const algo_call *call, size_t count, size_t element,
                       size_t acc, const plan_prices *prices, double *seconds);

#endif
