/* SPDX-License-Identifier: Apache-2.0
 * Messages and bytes that plans promise; real runs' counters are compared with the same. */
#include "plans.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct traffic {
    uint64_t bytes, messages;
} traffic;

static traffic traffic_of(const char *algorithm, plan_collective collective, int ranks, int rank,
                          size_t count, size_t element, size_t acc)
{
    const algo *a = algo_find(algorithm);
    plan *p = a->build(collective, ranks, rank, 0, a->chunks(collective, ranks, 0));
    traffic t;
    assert_non_null(p);
    plan_traffic(p, count, element, acc, &t.bytes, &t.messages);
    plan_free(p);
    return t;
}

static void ring_all_reduce_sends_2_n_minus_1_messages_of_one_nth_each(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        for (int rank = 0; rank < ranks; rank++) {
            const size_t count = 1000 * (size_t)ranks, bytes = count * sizeof(float);
            const traffic t = traffic_of("ring", PLAN_ALL_REDUCE, ranks, rank, count, 4, 4);
            assert_int_equal(t.messages, 2 * (ranks - 1));
            assert_int_equal(t.bytes, 2 * (size_t)(ranks - 1) * bytes / (size_t)ranks);
        }
    }
}

static void ring_has_as_many_steps_for_100000_ranks_as_for_5(void **state)
{
    const algo *ring = algo_find("ring");
    plan *small = ring->build(PLAN_ALL_REDUCE, 5, 2, 0, 5);
    plan *large = ring->build(PLAN_ALL_REDUCE, 100000, 2, 0, 100000);
    (void)state;
    assert_non_null(small);
    assert_non_null(large);
    assert_int_equal(small->step_count, large->step_count);
    assert_int_equal(large->sends[3], 2 * 99999);
    assert_int_equal(large->recvs[1], 2 * 99999);
    plan_free(small);
    plan_free(large);
}

static void halves_of_the_ring_send_half(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 9; ranks++) {
        const size_t count = 77, block = count * sizeof(float);
        const traffic scatter = traffic_of("ring", PLAN_REDUCE_SCATTER, ranks, 0, count, 4, 4);
        const traffic gather = traffic_of("ring", PLAN_ALL_GATHER, ranks, 0, count, 4, 4);
        assert_int_equal(scatter.messages, ranks - 1);
        assert_int_equal(scatter.bytes, (size_t)(ranks - 1) * block);
        assert_int_equal(gather.messages, ranks - 1);
        assert_int_equal(gather.bytes, (size_t)(ranks - 1) * block);
    }
}

static void uneven_chunks_add_up_to_the_same_over_all_ranks(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 9; ranks++) {
        uint64_t sum = 0;
        for (int rank = 0; rank < ranks; rank++)
            sum += traffic_of("ring", PLAN_ALL_REDUCE, ranks, rank, 1001, 4, 4).bytes;
        assert_int_equal(sum, 2 * (uint64_t)(ranks - 1) * 1001 * 4);
    }
}

/* The first hop carries the type, the later ones float32, the all-gather the type. */
static void sixteen_bit_sums_travel_as_float32_after_the_first_hop(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 9; ranks++) {
        const size_t part = 10;
        const traffic t = traffic_of("ring", PLAN_ALL_REDUCE, ranks, 0, part * (size_t)ranks, 2, 4);
        const size_t hops = (size_t)ranks - 1;
        assert_int_equal(t.bytes, part * (2 + 4 * (hops - 1) + 2 * hops));
    }
}

static void direct_all_reduce_sends_as_much_as_the_ring(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 16; ranks++) {
        const size_t count = 64 * (size_t)ranks;
        const traffic t = traffic_of("direct", PLAN_ALL_REDUCE, ranks, 0, count, 4, 4);
        assert_int_equal(t.messages, 2 * (ranks - 1));
        assert_int_equal(t.bytes, 2 * (size_t)(ranks - 1) * 64 * 4);
    }
}

static void chain_sends_the_vector_up_and_down(void **state)
{
    (void)state;
    assert_int_equal(traffic_of("chain", PLAN_ALL_REDUCE, 4, 0, 100, 4, 4).bytes, 400);
    assert_int_equal(traffic_of("chain", PLAN_ALL_REDUCE, 4, 1, 100, 4, 4).bytes, 800);
    assert_int_equal(traffic_of("chain", PLAN_ALL_REDUCE, 4, 3, 100, 4, 4).bytes, 400);
    assert_int_equal(traffic_of("chain", PLAN_BROADCAST, 4, 3, 100, 4, 4).bytes, 0);
}

static void acknowledgements_are_no_traffic(void **state)
{
    (void)state;
    const traffic t = traffic_of("direct", PLAN_BROADCAST, 4, 1, 100, 4, 4);
    assert_int_equal(t.messages, 0);
    assert_int_equal(t.bytes, 0);
}

static void counts_that_seal_found_agree_between_all_pairs(void **state)
{
    static const char *const names[] = {"ring", "direct", "chain"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        const algo *a = algo_find(names[i]);
        const plan_case c = {a, PLAN_REDUCE, 6, 4, a->chunks(PLAN_REDUCE, 6, 1 << 24)};
        plan_set set = plans_build(&c);
        for (int from = 0; from < 6; from++) {
            for (int to = 0; to < 6; to++) {
                assert_int_equal(set.of[from]->sends[to], set.of[to]->recvs[from]);
                assert_int_equal(set.of[from]->acks_out[to], set.of[to]->acks_in[from]);
            }
        }
        plans_free(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_all_reduce_sends_2_n_minus_1_messages_of_one_nth_each),
        cmocka_unit_test(ring_has_as_many_steps_for_100000_ranks_as_for_5),
        cmocka_unit_test(halves_of_the_ring_send_half),
        cmocka_unit_test(uneven_chunks_add_up_to_the_same_over_all_ranks),
        cmocka_unit_test(sixteen_bit_sums_travel_as_float32_after_the_first_hop),
        cmocka_unit_test(direct_all_reduce_sends_as_much_as_the_ring),
        cmocka_unit_test(chain_sends_the_vector_up_and_down),
        cmocka_unit_test(acknowledgements_are_no_traffic),
        cmocka_unit_test(counts_that_seal_found_agree_between_all_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
