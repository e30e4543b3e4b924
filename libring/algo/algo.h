/* SPDX-License-Identifier: Apache-2.0
 *
 * algo: pure functions from (collective, the world as every rank knows it, my rank) to a plan.
 * To add one: a file here and a line in the table (algo.c); it is then proven, priced, swept,
 * benchmarked and drawn like the others.
 */
#ifndef RING_ALGO_H
#define RING_ALGO_H

#include "plan.h"

/** Most inputs or outputs of one fold: what a kernel takes in one pass. This room does not see
 *  kernels.h; core, which sees both, compares them. */
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
    /** Chunks that it wants for a call of @p bytes in all; depends on arguments alone. */
    int (*chunks)(plan_collective collective, const plan_world *world, size_t bytes);
    /** Builds and seals the plan; call->chunks is any multiple of chunks(collective, world, 0).
     *  @return NULL, with fail() called, if out of memory or if asked for what it cannot do. */
    plan *(*build)(const algo_call *call);
    uint32_t keeps_sums; /* collectives whose plans may have scratch (a bit for each
                            plan_collective): long calls run slice by slice on every rank */
    bool eager;          /* plans send whole vectors eagerly: likewise */
    bool in_rank_order;  /* where the world asks for it, every element is combined in that order */
    bool by_block;  /* operands lie in one block each, sums too: it serves blocks of any lengths */
    bool for_hosts; /* on one host it is right, but not to be chosen: others do the same there */
} algo;

/** @return the table, *count entries. */
const algo *algo_all(size_t *count);
/** @return the algorithm, NULL if unknown. */
const algo *algo_find(const char *name);

/** @return true if @p a can do @p collective among the ranks of @p world, in the order that it asks
 *  for. */
bool algo_serves(const algo *a, plan_collective collective, const plan_world *world);

/** Price of a call by @p a: that of the dearest of some ranks, which stand for the classes of
 *  ranks. call->rank does not matter.
 *  @param[out] seconds  HUGE_VAL if the algorithm cannot do it, or must not because it would send
 *                       more than eager_max.
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status algo_price(const algo *a, const algo_call *call, size_t count, size_t element,
                       size_t acc, const plan_prices *prices, double *seconds);

#endif
