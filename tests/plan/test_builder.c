/* SPDX-License-Identifier: Apache-2.0
 * Building, sealing and walking plans. */
#include "plan.h"

#include "unit_test.h"

static plan *new_plan(int rank, int ranks, int chunks)
{
    plan *p = plan_new(PLAN_ALL_REDUCE, "test", rank, ranks, 0, chunks);
    assert_non_null(p);
    return p;
}

static void an_empty_plan_has_no_steps(void **state)
{
    plan *p = new_plan(0, 3, 1);
    assert_int_equal(plan_seal(p), RING_OK);
    const plan_cursor at = plan_begin(p);
    assert_null(plan_at(&at));
    assert_int_equal(plan_length(p), 0);
    plan_free(p);
}

static void steps_come_in_order_with_their_operands(void **state)
{
    plan *p = new_plan(1, 3, 8);
    plan_send(p, PLAN_SRC, 2, 3, 0, PLAN_WIRE);
    plan_fold(p, 3, 2);
    plan_fold_message(p, 2, PLAN_WIRE_ACC);
    plan_fold_local(p, PLAN_SRC);
    plan_fold_into(p, PLAN_DST);
    plan_fold_to(p, 0, PLAN_WIRE);
    plan_wait(p, 0, 1);
    assert_int_equal(plan_seal(p), RING_OK);

    plan_cursor at = plan_begin(p);
    const plan_step *step = plan_at(&at);
    assert_int_equal(step->kind, PLAN_STEP_SEND);
    assert_false(step->eager);
    assert_int_equal(plan_input(&at, step, 0).rank, 1);
    assert_int_equal(plan_input(&at, step, 0).chunk, 2);
    assert_int_equal(plan_input(&at, step, 0).chunks, 3);
    assert_int_equal(plan_output(&at, step, 0).rank, 0);
    assert_int_equal(plan_output(&at, step, 0).chunks, 3);
    assert_int_equal(plan_output(&at, step, 0).buffer, PLAN_WIRE);

    plan_next(&at);
    step = plan_at(&at);
    assert_int_equal(step->kind, PLAN_STEP_FOLD);
    assert_int_equal(step->ins, 2);
    assert_int_equal(step->outs, 2);
    assert_int_equal(plan_input(&at, step, 0).rank, 2);
    assert_int_equal(plan_input(&at, step, 0).wire, PLAN_WIRE_ACC);
    assert_int_equal(plan_input(&at, step, 1).rank, 1);
    assert_int_equal(plan_output(&at, step, 0).rank, 1);
    assert_true(plan_output(&at, step, 0).finish);
    assert_int_equal(plan_output(&at, step, 1).rank, 0);
    assert_false(plan_output(&at, step, 1).finish);
    assert_int_equal(plan_output(&at, step, 1).wire, PLAN_WIRE_ACC);

    plan_next(&at);
    step = plan_at(&at);
    assert_int_equal(step->kind, PLAN_STEP_WAIT);
    assert_int_equal(step->peer, 0);
    assert_int_equal(step->back, 1);

    plan_next(&at);
    assert_null(plan_at(&at));
    plan_free(p);
}

static void messages_have_the_type_of_the_buffer_they_come_from(void **state)
{
    plan *p = new_plan(0, 2, 1);
    plan_send_eager(p, PLAN_SRC, 0, 1, 1, PLAN_WIRE);
    plan_send(p, PLAN_SCRATCH, 0, 1, 1, PLAN_SCRATCH);
    plan_recv(p, 1, PLAN_DST, 0, 1);
    plan_recv(p, 1, PLAN_SCRATCH, 0, 1);
    assert_int_equal(plan_seal(p), RING_OK);
    assert_true(p->steps[0].eager);
    assert_int_equal(p->locs[p->steps[0].first_out].wire, PLAN_WIRE_DATA);
    assert_int_equal(p->locs[p->steps[1].first_out].wire, PLAN_WIRE_ACC);
    assert_int_equal(p->locs[p->steps[2].first_in].wire, PLAN_WIRE_DATA);
    assert_int_equal(p->locs[p->steps[3].first_in].wire, PLAN_WIRE_ACC);
    plan_free(p);
}

/* A result is relayed unless the fold keeps it, equally finished. */
static void results_that_are_kept_are_not_relayed(void **state)
{
    plan *p = new_plan(0, 4, 1);
    plan_fold(p, 0, 1);
    plan_fold_local(p, PLAN_SRC);
    plan_fold_into(p, PLAN_DST);
    plan_fold_to(p, 1, PLAN_DST);
    plan_fold_to(p, 2, PLAN_WIRE);
    plan_send(p, PLAN_DST, 0, 1, 3, PLAN_DST);
    assert_int_equal(plan_seal(p), RING_OK);
    plan_cursor at = plan_begin(p);
    assert_false(plan_relays(&at, plan_at(&at), 0));
    assert_false(plan_relays(&at, plan_at(&at), 1));
    assert_true(plan_relays(&at, plan_at(&at), 2));
    plan_next(&at);
    assert_false(plan_relays(&at, plan_at(&at), 0));
    plan_free(p);
}

/* Each round's chunks, expected for a stride that goes round in both directions. */
static void check_rounds(int stride, const int *expected, int rounds)
{
    plan *p = new_plan(0, 2, 4);
    plan_repeat(p, rounds, stride);
    plan_recv(p, 1, PLAN_DST, 1, 1);
    plan_send(p, PLAN_DST, 1, 1, 1, PLAN_DST);
    assert_int_equal(plan_seal(p), RING_OK);
    assert_int_equal(plan_length(p), 2 * rounds);

    plan_cursor at = plan_begin(p);
    for (int round = 0; round < rounds; round++) {
        assert_int_equal(plan_at(&at)->kind, PLAN_STEP_RECV);
        assert_int_equal(plan_output(&at, plan_at(&at), 0).chunk, expected[round]);
        plan_next(&at);
        assert_int_equal(plan_at(&at)->kind, PLAN_STEP_SEND);
        assert_int_equal(plan_input(&at, plan_at(&at), 0).chunk, expected[round]);
        plan_next(&at);
    }
    assert_null(plan_at(&at));
    plan_free(p);
}

static void repeated_blocks_shift_their_chunks_round_the_vector(void **state)
{
    check_rounds(1, (const int[]){1, 2, 3, 0, 1}, 5);
    check_rounds(-1, (const int[]){1, 0, 3, 2, 1}, 5);
    check_rounds(-6, (const int[]){1, 3, 1}, 3);
    check_rounds(0, (const int[]){1, 1}, 2);
}

static void blocks_repeated_zero_times_are_not_there(void **state)
{
    plan *p = new_plan(0, 2, 2);
    plan_repeat(p, 0, 1);
    plan_send(p, PLAN_SRC, 0, 1, 1, PLAN_WIRE);
    plan_repeat(p, -3, 1);
    plan_send(p, PLAN_SRC, 0, 1, 1, PLAN_WIRE);
    plan_repeat(p, 1, 0);
    plan_copy(p, PLAN_SRC, 1, PLAN_DST, 1, 1);
    assert_int_equal(plan_seal(p), RING_OK);
    plan_cursor at = plan_begin(p);
    assert_int_equal(plan_length(p), 1);
    assert_int_equal(plan_at(&at)->kind, PLAN_STEP_COPY);
    assert_int_equal(p->peer_count, 0);
    plan_free(p);
}

static void expect_peer(const plan *p, int rank, int sends, int recvs)
{
    const plan_peer *peer = plan_peer_of(p, rank);
    assert_non_null(peer);
    assert_int_equal(peer->sends, sends);
    assert_int_equal(peer->recvs, recvs);
}

static void sealing_lists_the_peers_that_have_messages(void **state)
{
    plan *p = new_plan(0, 1000000, 8);
    plan_repeat(p, 5, 1);
    plan_send(p, PLAN_SRC, 0, 1, 999999, PLAN_WIRE);
    plan_fold(p, 0, 1);
    plan_fold_message(p, 17, PLAN_WIRE_DATA);
    plan_fold_local(p, PLAN_SRC);
    plan_fold_message(p, 999999, PLAN_WIRE_DATA);
    plan_fold_into(p, PLAN_DST);
    plan_fold_to(p, 999999, PLAN_DST);
    plan_repeat(p, 1, 0);
    plan_recv(p, 17, PLAN_DST, 7, 1);
    plan_wait(p, 999999, 0);
    assert_int_equal(plan_seal(p), RING_OK);
    assert_int_equal(p->peer_count, 2);
    expect_peer(p, 17, 0, 6);
    expect_peer(p, 999999, 10, 5);
    assert_null(plan_peer_of(p, 0));
    assert_null(plan_peer_of(p, 18));
    plan_free(p);
}

static void sealing_finds_the_range_of_scratch(void **state)
{
    plan *p = new_plan(0, 2, 10);
    plan_send(p, PLAN_SRC, 0, 10, 1, PLAN_WIRE);
    plan_send(p, PLAN_SCRATCH, 5, 2, 1, PLAN_SCRATCH);
    plan_repeat(p, 2, 1);
    plan_recv(p, 1, PLAN_SCRATCH, 3, 1);
    assert_int_equal(plan_seal(p), RING_OK);
    assert_int_equal(p->scratch_first, 3);
    assert_int_equal(p->scratch_chunks, 4);
    plan_free(p);
    p = new_plan(0, 2, 10);
    plan_send(p, PLAN_SRC, 0, 10, 1, PLAN_WIRE);
    assert_int_equal(plan_seal(p), RING_OK);
    assert_int_equal(p->scratch_chunks, 0);
    plan_free(p);
}

static void a_failed_allocation_is_reported_by_sealing(void **state)
{
    plan *p = new_plan(0, 2, 2);
    p->failed = true;
    plan_repeat(p, 2, 1);
    plan_send(p, PLAN_SRC, 0, 1, 1, PLAN_WIRE);
    plan_fold(p, 0, 1);
    plan_fold_local(p, PLAN_SRC);
    plan_fold_into(p, PLAN_DST);
    assert_int_equal(plan_seal(p), RING_ERR_MEMORY);
    plan_free(p);
}

static void names_and_factors_are_those_of_nccl_tests(void **state)
{
    assert_string_equal(plan_collective_name(PLAN_REDUCE_SCATTER), "reduce_scatter");
    assert_string_equal(plan_collective_name(PLAN_RECV), "recv");
    assert_string_equal(plan_collective_name((plan_collective)99), "?");
    assert_float_equal(plan_bus_factor(PLAN_ALL_REDUCE, 4), 1.5, 1e-12);
    assert_float_equal(plan_bus_factor(PLAN_ALL_GATHER, 4), 0.75, 1e-12);
    assert_float_equal(plan_bus_factor(PLAN_REDUCE_SCATTER, 2), 0.5, 1e-12);
    assert_float_equal(plan_bus_factor(PLAN_BROADCAST, 8), 1, 1e-12);
    assert_float_equal(plan_bus_factor(PLAN_ALL_TO_ALL, 4), 0.75, 1e-12);
    assert_float_equal(plan_bus_factor(PLAN_GATHER, 4), 0.75, 1e-12);
    assert_float_equal(plan_bus_factor(PLAN_SCATTER, 4), 0.75, 1e-12);
    assert_float_equal(plan_bus_factor(PLAN_REDUCE, 8), 1, 1e-12);
    assert_int_equal(plan_collective_find("broadcast"), PLAN_BROADCAST);
    assert_int_equal(plan_collective_find("shuffle"), PLAN_COLLECTIVE_COUNT);
}

static void every_collective_has_a_row_that_agrees_with_itself(void **state)
{
    for (int c = 0; c < PLAN_COLLECTIVE_COUNT; c++) {
        const plan_facts *facts = plan_facts_of((plan_collective)c);
        assert_int_equal(plan_collective_find(facts->name), c);
        assert_int_equal(facts->reduces, facts->result == PLAN_SUM || facts->result == PLAN_PREFIX);
        assert_int_equal(facts->rooted, facts->src_at == PLAN_ROOT || facts->dst_at == PLAN_ROOT);
        const bool pairs = facts->src_blocks && facts->dst_blocks;
        const bool one_rank = facts->src_blocks || facts->dst_blocks;
        assert_int_equal(facts->in_place == PLAN_DST_IS_BLOCK_OF_SRC, facts->src_blocks && !pairs);
        assert_int_equal(facts->in_place == PLAN_SRC_IS_BLOCK_OF_DST, facts->dst_blocks && !pairs);
        assert_int_equal(facts->personalized, pairs || (facts->rooted && one_rank));
        assert_int_equal(plan_blocks((plan_collective)c, 7), pairs ? 49 : one_rank ? 7 : 1);
    }
    assert_null(plan_facts_of((plan_collective)99));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_plan_has_no_steps),
        cmocka_unit_test(steps_come_in_order_with_their_operands),
        cmocka_unit_test(repeated_blocks_shift_their_chunks_round_the_vector),
        cmocka_unit_test(blocks_repeated_zero_times_are_not_there),
        cmocka_unit_test(messages_have_the_type_of_the_buffer_they_come_from),
        cmocka_unit_test(results_that_are_kept_are_not_relayed),
        cmocka_unit_test(sealing_lists_the_peers_that_have_messages),
        cmocka_unit_test(sealing_finds_the_range_of_scratch),
        cmocka_unit_test(a_failed_allocation_is_reported_by_sealing),
        cmocka_unit_test(names_and_factors_are_those_of_nccl_tests),
        cmocka_unit_test(every_collective_has_a_row_that_agrees_with_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
