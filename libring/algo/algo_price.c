/* SPDX-License-Identifier: Apache-2.0
 * Prices a call by an algorithm. The price is that of the rank that finishes last, so a few ranks
 * of each kind are priced, and the highest price counts. */
#include "algo.h"

#include <math.h>

typedef struct priced {
    const algo *a;
    algo_call call;
    size_t count, element, acc;
    const plan_prices *prices;
} priced;

/* @return NULL if out of memory; the builder has set fail_text(). */
static plan *plan_of(const priced *request, int rank)
{
    algo_call call = request->call;
    call.rank = rank;
    return request->a->build(&call);
}

static void add_far_traffic(const priced *request, const plan *p, uint64_t *out, uint64_t *in)
{
    uint64_t sent, taken;
    plan_far_traffic(p, request->call.world, request->count, request->element, request->acc, &sent,
                     &taken);
    *out += sent;
    *in += taken;
}

/* The ranks of a host share its wire to other hosts.
 * @param[out] share  bytes that all ranks of the host put on the wire (or take from it) for each
 *                    byte of this rank; at least 1. */
static ring_status share_of_wire(const priced *request, const plan *own, double *share)
{
    const plan_world *world = request->call.world;
    uint64_t own_out = 0, own_in = 0, out = 0, in = 0;
    *share = 1;
    if (world->hosts > 1)
        add_far_traffic(request, own, &own_out, &own_in);
    if (own_out + own_in == 0)
        return RING_OK;
    for (int rank = 0; rank < world->ranks; rank++) {
        if (plan_host_of(world, rank) != plan_host_of(world, own->rank))
            continue;
        plan *p = plan_of(request, rank);
        if (p == NULL)
            return RING_ERR_MEMORY;
        add_far_traffic(request, p, &out, &in);
        plan_free(p);
    }
    if (own_out > 0)
        *share = fmax(*share, (double)out / (double)own_out);
    if (own_in > 0)
        *share = fmax(*share, (double)in / (double)own_in);
    return RING_OK;
}

static ring_status price_of_rank(const priced *request, int rank, double *seconds)
{
    plan_prices prices = *request->prices;
    double share;
    plan *p = plan_of(request, rank);
    if (p == NULL)
        return RING_ERR_MEMORY;
    ring_status status = share_of_wire(request, p, &share);
    if (status == RING_OK) {
        prices.other_host.beta *= share;
        status = plan_cost(p, request->call.world, request->count, request->element, request->acc,
                           &prices, seconds);
    }
    plan_free(p);
    return status;
}

/* @return the first rank that is on another host than rank 0; 0 if there is none. */
static int first_elsewhere(const plan_world *world)
{
    for (int rank = 1; rank < world->ranks && world->hosts > 1; rank++)
        if (plan_host_of(world, rank) != plan_host_of(world, 0))
            return rank;
    return 0;
}

/* `some` lists the ranks to price: the ends and the middle of chains; the roots of trees, their
 * children and leaves; and the last rank of one host and the first rank of the next host. */
ring_status algo_price(const algo *a, const algo_call *call, size_t count, size_t element,
                       size_t acc, const plan_prices *prices, double *seconds)
{
    const priced request = {a, *call, count, element, acc, prices};
    const int ranks = call->world->ranks, elsewhere = first_elsewhere(call->world);
    const int some[] = {0,         1 % ranks, ranks / 2,
                        ranks - 1, elsewhere, elsewhere > 0 ? elsewhere - 1 : 0};
    *seconds = HUGE_VAL;
    if (!algo_serves(a, call->collective, call->world))
        return RING_OK;
    *seconds = 0;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        bool known = false;
        double own = 0;
        for (size_t k = 0; k < i; k++)
            known |= some[k] == some[i];
        if (!known)
            RING_TRY(price_of_rank(&request, some[i], &own));
        *seconds = fmax(*seconds, own);
    }
    return RING_OK;
}
