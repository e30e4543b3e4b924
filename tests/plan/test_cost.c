/* SPDX-License-Identifier: Apache-2.0
 * The cost model: formulas where there are some, and sense elsewhere. */
#include "plans.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const plan_cost_params sending = {
    .alpha = 10e-6, .alpha_ref = 10e-6, .beta = 1e-9, .gamma = 0, .overhead = 2e-6};
static const plan_cost_params mapping = {.alpha = 0.4e-6, .alpha_ref = 0.3e-6, .beta = 1 / 8e9,
                                         .gamma = 1 / 60e9, .overhead = 0.2e-6, .maps = true,
                                         .reference_min = 2048};

static double price_at(const char *algorithm, plan_collective collective, int ranks, int rank,
                       size_t count, const plan_cost_params *params)
{
    const algo *a = algo_find(algorithm);
    plan *p = a->build(collective, ranks, rank, 0, a->chunks(collective, ranks, 4 * count));
    assert_non_null(p);
    const double seconds = plan_cost(p, count, 4, 4, params);
    plan_free(p);
    return seconds;
}

static double price(const char *algorithm, plan_collective collective, int ranks, size_t count,
                    const plan_cost_params *params)
{
    return price_at(algorithm, collective, ranks, ranks / 2, count, params);
}

static void expect_near(double value, double expected)
{
    if (value < 0.999 * expected || value > 1.001 * expected)
        fail_msg("%g instead of %g", value, expected);
}

/* 2 (n - 1) hops of 1/n of the vector. */
static void ring_costs_what_the_textbook_says(void **state)
{
    (void)state;
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
    plan_cost_params params = sending;
    (void)state;
    params.gamma = 1e-9;
    const double added = price("ring", PLAN_ALL_REDUCE, 4, 4000, &params) -
                         price("ring", PLAN_ALL_REDUCE, 4, 4000, &sending);
    expect_near(added, 3 * 3 * 4000 * 1e-9); /* three folds of two inputs and one output */
}

static void hundred_thousand_ranks_are_priced_at_once(void **state)
{
    const double start = clock_now();
    const double hops = 2.0 * 99999;
    (void)state;
    expect_near(price("ring", PLAN_ALL_REDUCE, 100000, 100000, &sending),
                2e-6 + hops * (10e-6 + 4e-9));
    assert_true(price("direct", PLAN_ALL_REDUCE, 100000, 100000, &sending) > 0);
    assert_true(price("chain", PLAN_ALL_REDUCE, 100000, 100000, &sending) > hops * 10e-6);
    assert_true(clock_now() - start < 5);
}

static void a_pipeline_pays_for_its_fill(void **state)
{
    (void)state;
    const double few = price("chain", PLAN_BROADCAST, 4, 1 << 20, &sending);
    const double many = price("chain", PLAN_BROADCAST, 68, 1 << 20, &sending);
    const double chunk = 4.0 * (1 << 20) / 32;
    expect_near(many - few, 64 * (10e-6 + chunk * 1e-9));
}

static void direct_wins_on_mapped_memory_and_many_hops_lose_when_short(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 32; ranks *= 2) {
        for (size_t count = 1; count < (1u << 24); count *= 16)
            assert_true(price("direct", PLAN_ALL_REDUCE, ranks, count, &mapping) <=
                        price("ring", PLAN_ALL_REDUCE, ranks, count, &mapping));
        if (ranks > 2)
            assert_true(price("direct", PLAN_ALL_REDUCE, ranks, 1, &sending) <
                        price("ring", PLAN_ALL_REDUCE, ranks, 1, &sending));
    }
}

static void longer_calls_cost_more(void **state)
{
    static const char *const names[] = {"ring", "direct", "chain"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        for (int c = 0; c < PLAN_BARRIER; c++) {
            if (!algo_find(names[i])->supports((plan_collective)c))
                continue;
            double before = 0;
            for (size_t count = 0; count < (1u << 26); count = 4 * count + 4096) {
                const double now = price(names[i], (plan_collective)c, 6, count, &sending);
                assert_true(now > before);
                before = now;
            }
        }
    }
}

static void one_rank_alone_pays_for_its_kernel_only(void **state)
{
    (void)state;
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
        cmocka_unit_test(direct_wins_on_mapped_memory_and_many_hops_lose_when_short),
        cmocka_unit_test(longer_calls_cost_more),
        cmocka_unit_test(one_rank_alone_pays_for_its_kernel_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
