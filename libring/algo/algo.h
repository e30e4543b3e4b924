/* SPDX-License-Identifier: Apache-2.0
 *
 * algo: defines algorithms, which are pure functions from a collective, the facts that every rank
 * knows, and this rank's number to a plan. To add an algorithm, add a file here and a line to the
 * table in algo.c. It is then proven, priced, swept, benchmarked and drawn like the others.
 */
#ifndef RING_ALGO_H
#define RING_ALGO_H

#include "plan.h"

/** Largest number of inputs or outputs of a fold. It must equal the kernels' limit, but this room
 *  does not include kernels.h; core, which includes both headers, compares the two numbers. */
enum { ALGO_MAX_OPERANDS = 64 };

typedef struct algo_call {
    plan_collective collective;
    const plan_world *world;
    int32_t rank, root, chunks;
} algo_call;

typedef struct algo {
    const char *name;
    const char *about; /* one line for --help and docs */
    int max_ranks;     /* most ranks of a plan; 0: no limit, as for all personalized collectives */
    /** @return true if the algorithm can perform the collective. */
    bool (*supports)(plan_collective collective);
    /** @return the number of chunks for a call of @p bytes in all. It depends only on the
     *  arguments. */
    int (*chunks)(plan_collective collective, const plan_world *world, size_t bytes);
    /** Builds and seals the plan; call->chunks is any multiple of chunks(collective, world, 0).
     *  @return NULL, with fail() called, if out of memory or if the call is not supported. */
    plan *(*build)(const algo_call *call);
    uint32_t keeps_sums; /* collectives whose plans may have scratch, as a bit for each
                            plan_collective; their long calls are sliced on every rank      */
    bool eager;          /* plans send whole vectors eagerly, so long calls are sliced too    */
    bool in_rank_order;  /* combines every element in rank order if the world requires it     */
    bool by_block;       /* each operand, sums too, is within one block, so that blocks may have
                            any lengths                                                       */
    bool for_hosts;      /* is chosen only for several hosts; on one host, another algorithm has
                            equivalent plans                                                  */
} algo;

/** @return the table, which has *count entries. */
const algo *algo_all(size_t *count);
/** @return the algorithm; NULL if the name is unknown. */
const algo *algo_find(const char *name);

/** @return true if the algorithm can perform the collective among the ranks of the world, in the
 *  combining order that the world requires. */
bool algo_serves(const algo *a, plan_collective collective, const plan_world *world);

/** Prices a call by the highest price of a few ranks, which represent all classes of ranks.
 *  call->rank is ignored.
 *  @param[out] seconds  HUGE_VAL if the algorithm does not support the call, or would send
 *                       more than eager_max eagerly.
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status algo_price(const algo *a, const algo_call *call, size_t count, size_t element,
                       size_t acc, const plan_prices *prices, double *seconds);

#endif
