/* SPDX-License-Identifier: Apache-2.0
 * Combining orders: what makes the bits of the result. */
#include "plans.h"

#include <string.h>

#include "unit_test.h"

static const plan_collective reducing[] = {PLAN_ALL_REDUCE, PLAN_REDUCE_SCATTER, PLAN_REDUCE};

typedef int32_t order[2 * MOST_RANKS]; /* in postfix */

static void read_orders(const plan_case *c, order *orders)
{
    plan_set set = plans_build(c);
    for (int chunk = 0; chunk < c->chunks; chunk++)
        if (plan_order((const plan *const *)set.of, set.ranks, chunk, orders[chunk]) != RING_OK)
            fail_msg("%s", fail_text());
    plans_free(&set);
}

/* Writes what the order of a chunk should be. */
typedef void (*expectation)(const plan_case *c, int chunk, order expected);

static void check_orders(plan_case c, expectation expect)
{
    static order orders[3 * MOST_RANKS];
    const plan_world world = plans_world(c.ranks, c.per_host);
    if (!c.algorithm->supports(c.collective))
        return;
    c.chunks *= c.algorithm->chunks(c.collective, &world, 0);
    read_orders(&c, orders);
    for (int chunk = 0; chunk < c.chunks; chunk++) {
        order expected;
        expect(&c, chunk, expected);
        for (int i = 0; i < 2 * c.ranks - 1; i++)
            assert_int_equal(orders[chunk][i], expected[i]);
    }
}

static void each_reduction(const char *algorithm, int per_host, expectation expect)
{
    const algo *a = algo_find(algorithm);
    for (size_t i = 0; i < sizeof reducing / sizeof *reducing; i++) {
        for (int ranks = 1; ranks <= 12; ranks++)
            check_orders((plan_case){a, reducing[i], ranks, ranks / 2, 2, per_host}, expect);
        check_orders((plan_case){a, reducing[i], 17, 3, 1, per_host}, expect);
    }
}

/* Ranks first, first + 1, ... round to the one before it, left to right. */
static void one_by_one(const plan_case *c, int first, order expected)
{
    int at = 0;
    for (int i = 0; i < c->ranks; i++) {
        expected[at++] = (first + i) % c->ranks;
        if (i > 0)
            expected[at++] = -1;
    }
}

static void block_order(const plan_case *c, int chunk, order expected)
{
    one_by_one(c, chunk / (c->chunks / c->ranks) + 1, expected);
}

static void rank_order(const plan_case *c, int chunk, order expected)
{
    one_by_one(c, 0, expected);
}

static void ring_combines_each_block_from_its_successor_round_to_its_owner(void **state)
{
    each_reduction("ring", 0, block_order);
}

static void direct_combines_every_chunk_in_the_rings_order(void **state)
{
    each_reduction("direct", 0, block_order);
}

static void direct_combines_every_chunk_in_rank_order_when_asked(void **state)
{
    each_reduction("direct", LAYOUT_RANK_ORDER, rank_order);
}

static void chain_and_oneshot_combine_every_chunk_in_rank_order(void **state)
{
    each_reduction("chain", 0, rank_order);
    each_reduction("oneshot", 0, rank_order);
}

/* Neighbours by neighbours, of nodes that stand for one rank or two. */
static int by_halves(int pairs, int node, int count, int32_t *out)
{
    if (count > 1) {
        const int left = by_halves(pairs, node, count / 2, out);
        const int right = by_halves(pairs, node + count / 2, count / 2, out + left);
        out[left + right] = -1;
        return left + right + 1;
    }
    out[0] = node < pairs ? 2 * node : node + pairs;
    if (node >= pairs)
        return 1;
    out[1] = out[0] + 1;
    out[2] = -1;
    return 3;
}

static void neighbours_first(const plan_case *c, int chunk, order expected)
{
    int nodes = 1;
    while (2 * nodes <= c->ranks)
        nodes *= 2;
    assert_int_equal(by_halves(c->ranks - nodes, 0, nodes, expected), 2 * c->ranks - 1);
}

static void halving_combines_neighbours_by_neighbours(void **state)
{
    each_reduction("halving", 0, neighbours_first);
}

/* A heap's subtree: its root, then the left and the right one are added. */
static int by_subtrees(const plan_case *c, int position, int root, int32_t *out)
{
    int at = 0;
    out[at++] = (root + position) % c->ranks;
    for (int child = 2 * position + 1; child <= 2 * position + 2; child++) {
        if (child >= c->ranks)
            continue;
        at += by_subtrees(c, child, root, out + at);
        out[at++] = -1;
    }
    return at;
}

static void root_then_subtrees(const plan_case *c, int chunk, order expected)
{
    by_subtrees(c, 0, c->root, expected);
}

static void tree_combines_each_rank_with_its_subtrees(void **state)
{
    each_reduction("tree", 0, root_then_subtrees);
    each_reduction("tree", 1, root_then_subtrees); /* hosts of one rank */
}

/* The host that a chunk ends on. */
static int home_of(const plan_case *c, const plan_world *world, int chunk)
{
    if (c->collective == PLAN_REDUCE)
        return plan_host_of(world, c->root);
    if (c->collective == PLAN_REDUCE_SCATTER)
        return plan_host_of(world, chunk / (c->chunks / c->ranks));
    return chunk / (c->chunks / world->hosts);
}

/* The hosts behind it, its own last, the ranks of each as they come, left to right. */
static void host_by_host(const plan_case *c, int chunk, order expected)
{
    const plan_world world = plans_world(c->ranks, c->per_host);
    const int home = home_of(c, &world, chunk);
    int at = 0;
    for (int i = 1; i <= world.hosts; i++)
        for (int rank = 0; rank < c->ranks; rank++)
            if (plan_host_of(&world, rank) == (home + i) % world.hosts) {
                expected[at++] = rank;
                if (at > 1)
                    expected[at++] = -1;
            }
    assert_int_equal(at, 2 * c->ranks - 1);
}

static void hierarchical_combines_host_by_host_the_chunks_own_last(void **state)
{
    static const int layouts[] = {0, 1, 2, 4, LAYOUT_IN_TURN, LAYOUT_GROWING, LAYOUT_SCATTERED};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        each_reduction("hierarchical", layouts[i], host_by_host);
}

static void a_rank_a_host_is_combined_in_the_rings_order(void **state)
{
    for (int ranks = 1; ranks <= 12; ranks++) {
        check_orders((plan_case){algo_find("hierarchical"), PLAN_ALL_REDUCE, ranks, 0, 2, 1},
                     block_order);
        check_orders((plan_case){algo_find("hierarchical"), PLAN_REDUCE_SCATTER, ranks, 0, 2, 1},
                     block_order);
    }
}

static void a_collective_without_sums_has_no_order(void **state)
{
    const plan_case c = {algo_find("ring"), PLAN_ALL_GATHER, 3, 0, 3, 0};
    plan_set set = plans_build(&c);
    order none;
    assert_int_equal(plan_order((const plan *const *)set.of, 3, 0, none), RING_ERR_INTERNAL);
    assert_int_equal(plan_order((const plan *const *)set.of, 3, 3, none), RING_ERR_INTERNAL);
    plans_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_combines_each_block_from_its_successor_round_to_its_owner),
        cmocka_unit_test(direct_combines_every_chunk_in_the_rings_order),
        cmocka_unit_test(direct_combines_every_chunk_in_rank_order_when_asked),
        cmocka_unit_test(chain_and_oneshot_combine_every_chunk_in_rank_order),
        cmocka_unit_test(halving_combines_neighbours_by_neighbours),
        cmocka_unit_test(tree_combines_each_rank_with_its_subtrees),
        cmocka_unit_test(hierarchical_combines_host_by_host_the_chunks_own_last),
        cmocka_unit_test(a_rank_a_host_is_combined_in_the_rings_order),
        cmocka_unit_test(a_collective_without_sums_has_no_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
