/* SPDX-License-Identifier: Apache-2.0
 * Orders of plans are asked chunk by chunk. */
#include "sweep_order.h"

#include <stdio.h>
#include <string.h>

plan_collective sweep_collective(sweep_kind kind)
{
    static const plan_collective of[SWEEP_KINDS] = {[SWEEP_ALL_REDUCE] = PLAN_ALL_REDUCE,
                                                    [SWEEP_REDUCE_SCATTER] = PLAN_REDUCE_SCATTER,
                                                    [SWEEP_ALL_GATHER] = PLAN_ALL_GATHER,
                                                    [SWEEP_BROADCAST] = PLAN_BROADCAST,
                                                    [SWEEP_REDUCE] = PLAN_REDUCE,
                                                    [SWEEP_GATHER] = PLAN_GATHER,
                                                    [SWEEP_SCATTER] = PLAN_SCATTER,
                                                    [SWEEP_ALL_TO_ALL] = PLAN_ALL_TO_ALL,
                                                    [SWEEP_SCAN] = PLAN_SCAN,
                                                    [SWEEP_EXSCAN] = PLAN_EXSCAN};
    return of[kind];
}

/* The chunks that the library chooses: for the power of two below the bytes. */
static int chunks_of(const algo *a, const sweep_case *c, const plan_world *world)
{
    const plan_collective collective = sweep_collective(c->kind);
    const size_t bytes = c->count * (size_t)plan_blocks(collective, c->ranks) *
                         ring_dtype_size(c->dtype);
    size_t typical = bytes > 0;
    while (typical > 0 && typical <= bytes / 2)
        typical *= 2;
    return a->chunks(collective, world, typical);
}

static size_t order_of_chunk(const oracle_case *c, size_t i, int *postfix)
{
    const sweep_order *order = c->context;
    int32_t found[2 * ORACLE_MOST_RANKS];
    int chunk = 0;
    plan_span span = plan_span_of(&order->layout, PLAN_WIRE, 0, 1);
    while (i >= span.offset + span.count)
        span = plan_span_of(&order->layout, PLAN_WIRE, ++chunk, 1);
    if (plan_order((const plan *const *)order->plans, c->ranks, chunk, found) != RING_OK)
        found[0] = 0; /* a wrong order shows as wrong values */
    for (int k = 0; k < 2 * c->ranks - 1; k++)
        postfix[k] = found[k];
    return span.offset + span.count;
}

bool sweep_order_find(sweep_order *order, const sweep_case *c, const char *algorithm, int hosts)
{
    int32_t host_of[ORACLE_MOST_RANKS];
    *order = (sweep_order){.at = order_of_chunk};
    if (strcmp(algorithm, "ring") == 0 || strcmp(algorithm, "direct") == 0)
        order->at = oracle_ring_order;
    else if (strcmp(algorithm, "chain") == 0 || strcmp(algorithm, "oneshot") == 0)
        order->at = oracle_rank_order;
    if (order->at != order_of_chunk)
        return true;
    const plan_world world = {.ranks = c->ranks,
                              .hosts = hosts < c->ranks ? hosts : c->ranks,
                              .host_of = host_of};
    for (int rank = 0; rank < c->ranks; rank++)
        host_of[rank] = rank % hosts;
    const algo *a = algo_find(algorithm);
    const plan_collective collective = sweep_collective(c->kind);
    algo_call call = {.collective = collective,
                      .world = &world,
                      .chunks = chunks_of(a, c, &world),
                      .root = plan_facts_of(collective)->rooted ? c->root : 0};
    for (call.rank = 0; call.rank < c->ranks; call.rank++) {
        order->plans[call.rank] = a->build(&call);
        if (order->plans[call.rank] == NULL) {
            fprintf(stderr, "the plan of rank %d: %s\n", call.rank, fail_text());
            sweep_order_free(order);
            return false;
        }
    }
    order->layout = (plan_layout){.collective = collective,
                                  .ranks = c->ranks,
                                  .chunks = call.chunks,
                                  .count = c->count};
    return true;
}

void sweep_order_free(sweep_order *order)
{
    for (int rank = 0; rank < ORACLE_MOST_RANKS; rank++)
        plan_free(order->plans[rank]);
}

bool sweep_order_serves(const char *algorithm, sweep_kind kind)
{
    return algo_find(algorithm)->supports(sweep_collective(kind));
}
