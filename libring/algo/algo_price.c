/* SPDX-License-Identifier: Apache-2.0
 * What a call costs by an algorithm: the price of the rank that is done last. */
#include "algo.h"

#include <math.h>

static ring_status price_of_rank(const algo *a, algo_call call, int rank, size_t count,
                                 size_t element, size_t acc, const plan_prices *prices,
                                 double *seconds)
{
    call.rank = rank;
    plan *p = a->build(&call);
    if (p == NULL)
        return RING_ERR_MEMORY; /* the builder has said what was missing */
    const ring_status status = plan_cost(p, call.world, count, element, acc, prices, seconds);
    plan_free(p);
    return status;
}

/* The first rank of a second host; 0 if there is none. */
static int first_elsewhere(const plan_world *world)
{
    for (int rank = 1; rank < world->ranks && world->hosts > 1; rank++)
        if (plan_host_of(world, rank) != plan_host_of(world, 0))
            return rank;
    return 0;
}

/* Ends and the middle of chains; roots, their children and leaves of trees; ranks on both sides
 * of what is between two hosts. */
ring_status algo_price(const algo *a, const algo_call *call, size_t count, size_t element,
                       size_t acc, const plan_prices *prices, double *seconds)
{
    const int ranks = call->world->ranks, elsewhere = first_elsewhere(call->world);
    const int some[] = {0,         1 % ranks, ranks / 2,
                        ranks - 1, elsewhere, elsewhere > 0 ? elsewhere - 1 : 0};
    *seconds = HUGE_VAL;
    if (!a->supports(call->collective) || (a->max_ranks > 0 && ranks > a->max_ranks))
        return RING_OK;
    *seconds = 0;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        bool walked = false;
        double own = 0;
        for (size_t k = 0; k < i; k++)
            walked |= some[k] == some[i];
        if (!walked)
            RING_TRY(price_of_rank(a, *call, some[i], count, element, acc, prices, &own));
        *seconds = fmax(*seconds, own);
    }
    return RING_OK;
}
