/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the algorithm whose plan has the lowest price in the cost model, or the one that
 * RING_ALGO names. All ranks make the same choice, because the tuner uses only facts that every
 * rank knows: the collective, the ranks, the size, and the weakest link between any two ranks.
 */
#include "tuner.h"

#include "kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_CLASSES = 64 };

struct tuner {
    const plan_world *world;
    plan_prices prices[2];              /* of calls that hosts run, and that accelerators run */
    const algo *forced;                 /* the algorithm of RING_ALGO, or NULL */
    bool warned[PLAN_COLLECTIVE_COUNT]; /* true if no more warning is needed that `forced` does not
                                           support the collective; only rank 0 warns */
    /* Indexed by whether accelerators run the call, by the collective, by whether sums are wider
     * than the type, and by log2(bytes). */
    tuner_choice choice[2][PLAN_COLLECTIVE_COUNT][2][SIZE_CLASSES];
};

/* The inputs of a price, except the algorithm. */
typedef struct tuner_call {
    plan_collective collective;
    size_t count, element, acc;
    bool on_device;
} tuner_call;

/* Seconds per carried message (alpha), reference (alpha_ref), carried byte (beta), byte that a
 * kernel processes (gamma) and call (overhead). Measured with ringperf with 2 ranks on two cores;
 * docs/performance.md has the commands. */
static const plan_cost_params mapped_links = {
    .alpha = 0.4e-6,
    .alpha_ref = 0.25e-6,
    .beta = 1.0 / 8e9,
    .gamma = 1.0 / 60e9,
    .overhead = 0.2e-6,
    .maps = true,
    .reference_min = REFERENCE_MIN_BYTES,
    .eager_max = EAGER_BYTES,
};
static const plan_cost_params sending_links = {
    .alpha = 9e-6,
    .alpha_ref = 9e-6,
    .beta = 1.0 / 2.0e9,
    .gamma = 1.0 / 20e9,
    .overhead = 1e-6,
    .maps = false,
    .eager_max = EAGER_BYTES,
};

ring_status tuner_new(const ring_comm *comm, struct tuner **out)
{
    const char *name = comm->settings.algo;
    const algo *forced = NULL;
    if (name[0] != '\0' && (forced = algo_find(name)) == NULL) {
        size_t count;
        const algo *all = algo_all(&count);
        char known[128] = "";
        for (size_t i = 0; i < count; i++)
            text_append(known, sizeof known, "%s%s", i > 0 ? ", " : "", all[i].name);
        return fail(RING_ERR_CONFIG, "RING_ALGO=%s: no such algorithm; known: %s", name, known);
    }
    struct tuner *t = calloc(1, sizeof *t);
    if (t == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while creating the tuner");
    t->world = &comm->plan_world;
    t->forced = forced;
    memset(t->warned, comm->rank != 0, sizeof t->warned);
    t->prices[false] = (plan_prices){.same_host = mapped_links, .other_host = sending_links};
    if (!comm->links.maps_hosts)
        t->prices[false].same_host = sending_links;
    *out = t;
    return RING_OK;
}

void tuner_use_device(struct tuner *t, const accelerator_terms *terms)
{
    const accelerator_rates *r = &terms->rates;
    const plan_cost_params prices = {.alpha = r->message,
                                     .alpha_ref = r->message,
                                     .beta = 1 / r->link,
                                     .gamma = 1 / r->memory,
                                     .overhead = r->start,
                                     .maps = !terms->apart,
                                     .reference_min = terms->eager + 1,
                                     .eager_max = terms->eager};
    plan_cost_params wire = prices;
    /* The host passes each message on when it sees it, at both ends. */
    wire.alpha = wire.alpha_ref = sending_links.alpha + 2 * r->message;
    wire.beta = fmax(sending_links.beta, prices.beta);
    t->prices[true] = (plan_prices){.same_host = prices, .other_host = wire};
}

void tuner_free(struct tuner *t)
{
    free(t);
}

static ring_status price(const struct tuner *t, const tuner_choice *choice, const tuner_call *call,
                         double *seconds)
{
    const algo_call wanted = {.collective = plan_collective_planned(call->collective),
                              .world = t->world,
                              .chunks = choice->chunks};
    return algo_price(choice->algorithm, &wanted, call->count, call->element, call->acc,
                      &t->prices[call->on_device], seconds);
}

/* Prices all algorithms that support the call, and returns the cheapest. A rank that lacks the
 * memory to price one of them fails, because ranks with different choices would hang. */
static ring_status cheapest(const struct tuner *t, const tuner_call *call, size_t bytes,
                            tuner_choice *best)
{
    size_t algorithms;
    const algo *all = algo_all(&algorithms);
    const plan_collective planned = plan_collective_planned(call->collective);
    double best_price = HUGE_VAL, cost;
    tuner_choice found = {0};
    for (size_t i = 0; i < algorithms; i++) {
        if (!algo_serves(&all[i], call->collective, t->world) ||
            (all[i].for_hosts && t->world->hosts == 1))
            continue;
        const tuner_choice choice = {.algorithm = &all[i],
                                     .chunks = all[i].chunks(planned, t->world, bytes)};
        /* A lane of an accelerator runs its ops in order, so the two directions of a pipeline do
         * not overlap, which the model assumes. Between hosts they need not: the wire is slower. */
        if (call->on_device && !all[i].for_hosts && planned == PLAN_ALL_REDUCE &&
            choice.chunks > t->world->ranks && found.algorithm != NULL)
            continue;
        RING_TRY(price(t, &choice, call, &cost));
        if (cost < best_price) {
            best_price = cost;
            found = choice;
        }
    }
    *best = found;
    return RING_OK;
}

static bool is_forced(struct tuner *t, plan_collective collective)
{
    if (t->forced == NULL)
        return false;
    const bool serves = algo_serves(t->forced, collective, t->world);
    if (!serves && !t->warned[collective])
        log_warn("RING_ALGO=%s does not support %s among %d rank%s%s: using another algorithm",
                 t->forced->name, plan_collective_name(collective), t->world->ranks,
                 plural(t->world->ranks),
                 t->world->rank_order ? " in rank order (RING_REPRODUCIBLE=1)" : "");
    t->warned[collective] = true;
    return serves;
}

ring_status tuner_choose(struct tuner *t, const call_signature *call, tuner_choice *choice)
{
    const plan_collective collective = call->collective;
    const bool widens = plan_facts_of(collective)->reduces &&
                        kernel_acc_size(call->dtype) > ring_dtype_size(call->dtype);
    const size_t bytes = signature_bytes(call, t->world->ranks);
    const int class = bytes == 0 ? 0 : 63 - __builtin_clzll((unsigned long long)bytes);
    const size_t typical = bytes == 0 ? 0 : (size_t)1 << class;
    /* One call represents its class. For types that are their own accumulators it has float32,
     * because the order of prices does not depend on the size of the type. */
    const size_t element = widens ? sizeof(uint16_t) : sizeof(float);
    const size_t blocks = (size_t)plan_blocks(collective, t->world->ranks);
    const tuner_call priced = {collective, typical / element / blocks, element, sizeof(float),
                               call->on_device};
    tuner_choice *known = &t->choice[call->on_device][collective][widens][class];
    if (known->algorithm == NULL && is_forced(t, collective))
        *known = (tuner_choice){.algorithm = t->forced,
                                .chunks = t->forced->chunks(plan_collective_planned(collective),
                                                            t->world, typical)};
    else if (known->algorithm == NULL)
        RING_TRY(cheapest(t, &priced, typical, known));
    *choice = *known;
    return known->algorithm != NULL ? RING_OK
                                    : fail(RING_ERR_INTERNAL, "no algorithm supports %s",
                                           plan_collective_name(collective));
}

double tuner_predict(struct tuner *t, const call_signature *call, size_t longest)
{
    const tuner_call priced = {call->collective, longest, ring_dtype_size(call->dtype),
                               kernel_acc_size(call->dtype), call->on_device};
    tuner_choice choice;
    double seconds;
    return tuner_choose(t, call, &choice) == RING_OK &&
                   price(t, &choice, &priced, &seconds) == RING_OK
               ? seconds
               : 0;
}
