/* SPDX-License-Identifier: Apache-2.0
 * The cost model: formulas where there are some, and sense elsewhere. */
#include "plans.h"

#include <math.h>
#include <stdlib.h>

#include "unit_test.h"

#define SENDING \
    { \
        .alpha = 10e-6, .alpha_ref = 10e-6, .beta = 1e-9, .gamma = 0, .overhead = 2e-6 \
    }
#define MAPPING \
    { \
        .alpha = 0.4e-6, .alpha_ref = 0.3e-6, .beta = 1 / 8e9, .gamma = 1 / 60e9, \
        .overhead = 0.2e-6, .maps = true, .reference_min = 2048 \
    }
static const plan_prices sending = {.same_host = SENDING, .other_host = SENDING};
static const plan_prices mapping = {.same_host = MAPPING, .other_host = SENDING};

static double price_among(const char *algorithm, plan_collective collective,
                          const plan_world *world, size_t count, const plan_prices *prices)
{
    const algo *a = algo_find(algorithm);
    const algo_call call = {collective, world, 0, 0, a->chunks(collective, world, 4 * count)};
    double seconds;
    assert_int_equal(algo_price(a, &call, count, 4, 4, prices, &seconds), RING_OK);
    return seconds;
}

static double price(const char *algorithm, plan_collective collective, int ranks, size_t count,
                    const plan_prices *prices)
{
    const plan_world world = {.ranks = ranks, .hosts = 1};
    return price_among(algorithm, collective, &world, count, prices);
}

static void expect_near(double value, double expected)
{
    if (value < 0.999 * expected || value > 1.001 * expected)
        fail_msg("%g instead of %g", value, expected);
}

/* 2 (n - 1) hops of 1/n of the vector. */
static void ring_costs_what_the_textbook_says(void **state)
{
    for (int ranks = 2; ranks <= 40; ranks++) {
        const double hops = 2.0 * (ranks - 1), part = 4.0 * 1000;
        expect_near(price("ring", PLAN_ALL_REDUCE, ranks, 1000 * (size_t)ranks, &sending),
                    2e-6 + hops * (10e-6 + part * 1e-9));
        expect_near(price("ring", PLAN_ALL_GATHER, ranks, 1000, &sending),
                    2e-6 + hops / 2 * (10e-6 + part * 1e-9));
    }
}

static void a_kernel_pays_for_each_byte_that_it_touches(void **state)
{
    plan_prices prices = sending;
    prices.same_host.gamma = 1e-9;
    const double added = price("ring", PLAN_ALL_REDUCE, 4, 4000, &prices) -
                         price("ring", PLAN_ALL_REDUCE, 4, 4000, &sending);
    expect_near(added, 3 * 3 * 4000 * 1e-9); /* three folds of two inputs and one output */
}

static void hundred_thousand_ranks_are_priced_at_once(void **state)
{
    const double start = clock_now();
    const double hops = 2.0 * 99999;
    expect_near(price("ring", PLAN_ALL_REDUCE, 100000, 100000, &sending),
                2e-6 + hops * (10e-6 + 4e-9));
    expect_near(price("halving", PLAN_ALL_REDUCE, 1 << 17, 1 << 17, &sending),
                2e-6 + 34 * 10e-6 + 2 * 4e-9 * ((1 << 17) - 1));
    assert_true(price("tree", PLAN_ALL_REDUCE, 100000, 100000, &sending) < hops * 10e-6);
    assert_true(price("chain", PLAN_ALL_REDUCE, 100000, 100000, &sending) > hops * 10e-6);
    static int32_t host_of[100000];
    for (int rank = 0; rank < 100000; rank++)
        host_of[rank] = rank / 8;
    const plan_world hosts = {.ranks = 100000, .hosts = 12500, .host_of = host_of};
    assert_true(price_among("tree", PLAN_ALL_REDUCE, &hosts, 1000, &mapping) < 1e-3);
    assert_true(price_among("ring", PLAN_ALL_REDUCE, &hosts, 1000, &mapping) > 1);
    assert_true(getenv("RING_TEST_TIMED") == NULL || clock_now() - start < 5);
}

static void a_pipeline_pays_for_its_fill(void **state)
{
    const double few = price("chain", PLAN_BROADCAST, 4, 1 << 20, &sending);
    const double many = price("chain", PLAN_BROADCAST, 68, 1 << 20, &sending);
    const double chunk = 4.0 * (1 << 20) / 32;
    expect_near(many - few, 64 * (10e-6 + chunk * 1e-9));
}

static void every_rank_of_direct_pays_alike(void **state)
{
    const plan_world world = {.ranks = 50, .hosts = 1};
    const algo *direct = algo_find("direct");
    for (int rank = 0; rank < 50; rank += 7) {
        plan *p = direct->build(&(algo_call){PLAN_ALL_REDUCE, &world, rank, 0, 50});
        double seconds;
        assert_int_equal(plan_cost(p, &world, 1000, 4, 4, &sending, &seconds), RING_OK);
        expect_near(seconds, price("direct", PLAN_ALL_REDUCE, 50, 1000, &sending));
        plan_free(p);
    }
}

static void direct_wins_on_mapped_memory_and_many_hops_lose_when_short(void **state)
{
    for (int ranks = 2; ranks <= 32; ranks *= 2) {
        for (size_t count = 1; count < (1u << 24); count *= 16)
            assert_true(price("direct", PLAN_ALL_REDUCE, ranks, count, &mapping) <=
                        price("ring", PLAN_ALL_REDUCE, ranks, count, &mapping));
        if (ranks > 2)
            assert_true(price("direct", PLAN_ALL_REDUCE, ranks, 1, &sending) <
                        price("ring", PLAN_ALL_REDUCE, ranks, 1, &sending));
    }
}

static void expect_cheapest(const char *name, plan_collective collective, int ranks, size_t count,
                            const plan_prices *prices)
{
    size_t algorithms;
    const algo *all = algo_all(&algorithms), *best = &all[0];
    for (size_t i = 1; i < algorithms; i++)
        if (!all[i].for_hosts && price(all[i].name, collective, ranks, count, prices) <
                                     price(best->name, collective, ranks, count, prices))
            best = &all[i];
    assert_string_equal(best->name, name);
}

static void each_algorithm_has_its_sizes(void **state)
{
    expect_cheapest("oneshot", PLAN_ALL_REDUCE, 4, 1, &mapping);
    expect_cheapest("oneshot", PLAN_ALL_REDUCE, 4, 1, &sending);
    expect_cheapest("direct", PLAN_ALL_REDUCE, 4, 1 << 22, &mapping);
    expect_cheapest("halving", PLAN_ALL_REDUCE, 256, 1, &sending); /* too many for one meeting */
    expect_cheapest("halving", PLAN_ALL_REDUCE, 1 << 14, 1 << 10, &sending);
    expect_cheapest("tree", PLAN_BROADCAST, 1 << 14, 1 << 10, &sending);
    expect_cheapest("tree", PLAN_REDUCE, 1 << 14, 1 << 10, &sending);
    expect_cheapest("ring", PLAN_REDUCE_SCATTER, 128, 1 << 20, &sending);
}

/* Three hosts of eight ranks: hops within a host are nearly free for who uses them. */
static void pairs_of_two_hosts_cost_more(void **state)
{
    int32_t host_of[24];
    const plan_world one = {.ranks = 24, .hosts = 1};
    const plan_world three = {.ranks = 24, .hosts = 3, .host_of = host_of};
    static const char *const names[] = {"oneshot", "direct", "ring", "halving", "tree", "chain"};
    for (int rank = 0; rank < 24; rank++)
        host_of[rank] = rank / 8;
    for (int i = 0; i < 6; i++) {
        const double near = price_among(names[i], PLAN_ALL_REDUCE, &one, 1000, &mapping);
        const double mixed = price_among(names[i], PLAN_ALL_REDUCE, &three, 1000, &mapping);
        const double far = price_among(names[i], PLAN_ALL_REDUCE, &three, 1000, &sending);
        if (mixed <= near || mixed > 1.05 * far)
            fail_msg("%s: %g on a host, %g on three, %g over slow links", names[i], near, mixed,
                     far);
    }
    assert_true(price_among("tree", PLAN_BROADCAST, &three, 1, &mapping) < 3 * 10e-6);
    assert_true(price_among("chain", PLAN_BROADCAST, &three, 1, &mapping) <
                price_among("chain", PLAN_BROADCAST, &three, 1, &sending) / 4);
}

/* Wires alone cost: then a call takes as long as what its busiest host sends, or takes. */
static void ranks_of_a_host_share_its_wire(void **state)
{
    static const plan_prices wire = {.same_host = {.maps = true}, .other_host = {.beta = 1e-9}};
    for (int ranks = 1; ranks <= 8; ranks++) {
        int32_t host_of[32];
        const plan_world four = {.ranks = 4 * ranks, .hosts = 4, .host_of = host_of};
        const size_t count = 10000 * (size_t)four.ranks;
        const double bytes = 4.0 * (double)count, n = four.ranks, others = 3.0 * ranks;
        for (int rank = 0; rank < four.ranks; rank++)
            host_of[rank] = rank / ranks;
        expect_near(price_among("hierarchical", PLAN_ALL_REDUCE, &four, count, &wire),
                    2 * bytes * 3 / 4 * 1e-9);
        expect_near(price_among("ring", PLAN_ALL_REDUCE, &four, count, &wire),
                    2 * bytes * (n - 1) / n * 1e-9);
        expect_near(price_among("direct", PLAN_ALL_REDUCE, &four, count, &wire),
                    2 * bytes * ranks * others / n * 1e-9);
        for (int rank = 0; rank < four.ranks; rank++)
            host_of[rank] = rank % 4;
        expect_near(price_among("hierarchical", PLAN_ALL_REDUCE, &four, count, &wire),
                    2 * bytes * 3 / 4 * 1e-9);
        expect_near(price_among("ring", PLAN_ALL_REDUCE, &four, count, &wire),
                    2 * bytes * ranks * (n - 1) / n * 1e-9);
    }
}

static const char *cheapest_among(const plan_world *world, size_t count)
{
    size_t algorithms;
    const algo *all = algo_all(&algorithms);
    const char *best = all[0].name;
    for (size_t i = 1; i < algorithms; i++)
        if (price_among(all[i].name, PLAN_ALL_REDUCE, world, count, &mapping) <
            price_among(best, PLAN_ALL_REDUCE, world, count, &mapping))
            best = all[i].name;
    return best;
}

/* Hosts of four ranks that follow each other, or come in turn. */
static void hierarchical_is_for_long_calls_among_hosts(void **state)
{
    int32_t host_of[32];
    for (int hosts = 3; hosts <= 8; hosts++) {
        const plan_world world = {.ranks = 4 * hosts, .hosts = hosts, .host_of = host_of};
        for (int in_turn = 0; in_turn < 2; in_turn++) {
            for (int rank = 0; rank < world.ranks; rank++)
                host_of[rank] = in_turn ? rank % hosts : rank / 4;
            assert_string_equal(cheapest_among(&world, 1 << 24), "hierarchical");
            if (hosts > 4) /* short calls: fewer hops count */
                assert_string_not_equal(cheapest_among(&world, 1), "hierarchical");
        }
    }
}

static void more_eager_bytes_than_allowed_have_no_price(void **state)
{
    plan_prices prices = sending;
    prices.same_host.eager_max = 4096;
    assert_true(price("oneshot", PLAN_ALL_REDUCE, 4, 1024, &prices) < 1);
    assert_true(isinf(price("oneshot", PLAN_ALL_REDUCE, 4, 1025, &prices)));
    assert_true(isinf(price("oneshot", PLAN_ALL_REDUCE, 65, 1, &sending))); /* max_ranks */
    for (int c = PLAN_GATHER; c <= PLAN_ALL_TO_ALL; c++)                    /* nothing is folded */
        assert_true(isfinite(price("direct", (plan_collective)c, 65, 1, &sending)));
    assert_true(isinf(price("ring", PLAN_GATHER, 4, 1, &sending)));
    assert_true(isinf(price("chain", PLAN_ALL_GATHER, 4, 1, &sending)));
}

static void longer_calls_cost_more(void **state)
{
    size_t algorithms;
    const algo *all = algo_all(&algorithms);
    for (size_t i = 0; i < algorithms; i++) {
        for (int c = 0; c < PLAN_BARRIER; c++) {
            if (!all[i].supports((plan_collective)c))
                continue;
            double before = 0;
            for (size_t count = 0; count < (1u << 26); count = 4 * count + 4096) {
                const double now = price(all[i].name, (plan_collective)c, 6, count, &sending);
                assert_true(now > before);
                before = now;
            }
        }
    }
}

static void one_rank_alone_pays_for_its_kernel_only(void **state)
{
    expect_near(price("ring", PLAN_ALL_REDUCE, 1, 6000, &mapping), 0.2e-6 + 2 * 24000 / 60e9);
    expect_near(price("direct", PLAN_BARRIER, 1, 0, &mapping), 0.2e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_costs_what_the_textbook_says),
        cmocka_unit_test(a_kernel_pays_for_each_byte_that_it_touches),
        cmocka_unit_test(hundred_thousand_ranks_are_priced_at_once),
        cmocka_unit_test(a_pipeline_pays_for_its_fill),
        cmocka_unit_test(every_rank_of_direct_pays_alike),
        cmocka_unit_test(each_algorithm_has_its_sizes),
        cmocka_unit_test(pairs_of_two_hosts_cost_more),
        cmocka_unit_test(ranks_of_a_host_share_its_wire),
        cmocka_unit_test(hierarchical_is_for_long_calls_among_hosts),
        cmocka_unit_test(more_eager_bytes_than_allowed_have_no_price),
        cmocka_unit_test(direct_wins_on_mapped_memory_and_many_hops_lose_when_short),
        cmocka_unit_test(longer_calls_cost_more),
        cmocka_unit_test(one_rank_alone_pays_for_its_kernel_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
