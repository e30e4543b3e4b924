/* SPDX-License-Identifier: Apache-2.0
 * Combining orders: what makes the bits of the result. */
#include "plans.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const plan_collective reducing[] = {PLAN_ALL_REDUCE, PLAN_REDUCE_SCATTER, PLAN_REDUCE};

static void read_orders(const plan_case *c, int32_t orders[][MOST_RANKS])
{
    plan_set set = plans_build(c);
    for (int chunk = 0; chunk < c->chunks; chunk++)
        if (plan_order((const plan *const *)set.of, set.ranks, chunk, orders[chunk]) != RING_OK)
            fail_msg("%s", fail_text());
    plans_free(&set);
}

static void each_reduction(const char *algorithm, int most, int parts,
                           void (*check)(const plan_case *c, int32_t orders[][MOST_RANKS]))
{
    static int32_t orders[4 * MOST_RANKS][MOST_RANKS];
    for (size_t i = 0; i < sizeof reducing / sizeof *reducing; i++) {
        for (int ranks = 1; ranks <= most; ranks++) {
            const plan_case c = {algo_find(algorithm), reducing[i], ranks, ranks / 2,
                                 parts * ranks};
            read_orders(&c, orders);
            check(&c, orders);
        }
    }
}

static void expect_block_order(const plan_case *c, int32_t orders[][MOST_RANKS])
{
    for (int chunk = 0; chunk < c->chunks; chunk++)
        for (int i = 0; i < c->ranks; i++)
            assert_int_equal(orders[chunk][i],
                             (chunk / (c->chunks / c->ranks) + 1 + i) % c->ranks);
}

static void expect_rank_order(const plan_case *c, int32_t orders[][MOST_RANKS])
{
    for (int chunk = 0; chunk < c->chunks; chunk++)
        for (int i = 0; i < c->ranks; i++)
            assert_int_equal(orders[chunk][i], i);
}

static void ring_combines_each_block_from_its_successor_round_to_its_owner(void **state)
{
    (void)state;
    each_reduction("ring", 12, 2, expect_block_order);
    each_reduction("ring", 17, 1, expect_block_order);
}

static void direct_combines_every_chunk_in_the_rings_order(void **state)
{
    (void)state;
    each_reduction("direct", 12, 2, expect_block_order);
    each_reduction("direct", 17, 1, expect_block_order);
}

static void chain_combines_every_chunk_in_rank_order(void **state)
{
    (void)state;
    each_reduction("chain", 12, 3, expect_rank_order);
    each_reduction("chain", 17, 1, expect_rank_order);
}

static void a_collective_without_sums_has_no_order(void **state)
{
    const plan_case c = {algo_find("ring"), PLAN_ALL_GATHER, 3, 0, 3};
    plan_set set = plans_build(&c);
    int32_t order[MOST_RANKS];
    (void)state;
    assert_int_equal(plan_order((const plan *const *)set.of, 3, 0, order), RING_ERR_INTERNAL);
    assert_int_equal(plan_order((const plan *const *)set.of, 3, 3, order), RING_ERR_INTERNAL);
    plans_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_combines_each_block_from_its_successor_round_to_its_owner),
        cmocka_unit_test(direct_combines_every_chunk_in_the_rings_order),
        cmocka_unit_test(chain_combines_every_chunk_in_rank_order),
        cmocka_unit_test(a_collective_without_sums_has_no_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
