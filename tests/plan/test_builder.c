/* SPDX-License-Identifier: Apache-2.0
 * Building, sealing and walking plans. */
#include "plan.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static plan *new_plan(int rank, int ranks, int chunks)
{
    plan *p = plan_new(PLAN_ALL_REDUCE, "test", rank, ranks, 0, chunks);
    assert_non_null(p);
    return p;
}

static void an_empty_plan_has_no_steps(void **state)
{
    plan *p = new_plan(0, 3, 1);
    (void)state;
    assert_int_equal(plan_seal(p), RING_OK);
    const plan_cursor at = plan_begin(p);
    assert_null(plan_at(&at));
    assert_int_equal(plan_length(p), 0);
    plan_free(p);
}

static void steps_come_in_order_with_their_operands(void **state)
{
    plan *p = new_plan(1, 3, 4);
    (void)state;
    plan_send(p, PLAN_SRC, 2, 0, PLAN_WIRE);
    plan_fold(p, true, PLAN_WIRE_ACC, PLAN_WIRE_DATA);
    plan_in(p, 2, PLAN_WIRE, 3);
    plan_in(p, 1, PLAN_SRC, 3);
    plan_out(p, 1, PLAN_DST, 3);
    plan_out(p, 0, PLAN_DST, 3);
    assert_int_equal(plan_seal(p), RING_OK);

    plan_cursor at = plan_begin(p);
    const plan_step *step = plan_at(&at);
    assert_int_equal(step->kind, PLAN_STEP_SEND);
    assert_int_equal(plan_input(&at, step, 0).rank, 1);
    assert_int_equal(plan_input(&at, step, 0).chunk, 2);
    assert_int_equal(plan_output(&at, step, 0).rank, 0);
    assert_int_equal(plan_output(&at, step, 0).buffer, PLAN_WIRE);

    plan_next(&at);
    step = plan_at(&at);
    assert_int_equal(step->kind, PLAN_STEP_FOLD);
    assert_true(step->finish);
    assert_int_equal(step->wire_in, PLAN_WIRE_ACC);
    assert_int_equal(step->ins, 2);
    assert_int_equal(step->outs, 2);
    assert_int_equal(plan_input(&at, step, 0).rank, 2);
    assert_int_equal(plan_input(&at, step, 1).rank, 1);
    assert_int_equal(plan_output(&at, step, 0).rank, 1);
    assert_int_equal(plan_output(&at, step, 1).rank, 0);

    plan_next(&at);
    assert_null(plan_at(&at));
    plan_free(p);
}

/* Each round's chunks, expected for a stride that goes round in both directions. */
static void check_rounds(int stride, const int *expected, int rounds)
{
    plan *p = new_plan(0, 2, 4);
    plan_repeat(p, rounds, stride);
    plan_recv(p, 1, PLAN_DST, 1);
    plan_send(p, PLAN_DST, 1, 1, PLAN_DST);
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
    (void)state;
    check_rounds(1, (const int[]){1, 2, 3, 0, 1}, 5);
    check_rounds(-1, (const int[]){1, 0, 3, 2, 1}, 5);
    check_rounds(-6, (const int[]){1, 3, 1}, 3);
    check_rounds(0, (const int[]){1, 1}, 2);
}

static void blocks_repeated_zero_times_are_not_there(void **state)
{
    plan *p = new_plan(0, 2, 2);
    (void)state;
    plan_repeat(p, 0, 1);
    plan_send(p, PLAN_SRC, 0, 1, PLAN_WIRE);
    plan_repeat(p, -3, 1);
    plan_send(p, PLAN_SRC, 0, 1, PLAN_WIRE);
    plan_repeat(p, 1, 0);
    plan_copy(p, PLAN_SRC, 1, PLAN_DST, 1);
    assert_int_equal(plan_seal(p), RING_OK);
    plan_cursor at = plan_begin(p);
    assert_int_equal(plan_length(p), 1);
    assert_int_equal(plan_at(&at)->kind, PLAN_STEP_COPY);
    assert_int_equal(p->sends[1], 0);
    plan_free(p);
}

static void sealing_counts_messages_and_acknowledgements_apart(void **state)
{
    plan *p = new_plan(0, 3, 8);
    (void)state;
    plan_repeat(p, 5, 1);
    plan_send(p, PLAN_SRC, 0, 2, PLAN_WIRE);
    plan_fold(p, true, PLAN_WIRE_DATA, PLAN_WIRE_DATA);
    plan_in(p, 1, PLAN_WIRE, 0);
    plan_in(p, 0, PLAN_SRC, 0);
    plan_in(p, 2, PLAN_WIRE, 0);
    plan_out(p, 0, PLAN_DST, 0);
    plan_out(p, 2, PLAN_DST, 0);
    plan_repeat(p, 1, 0);
    plan_recv(p, 1, PLAN_DST, 7);
    plan_ack(p, 2);
    plan_wait_ack(p, 1);
    assert_int_equal(plan_seal(p), RING_OK);
    assert_int_equal(p->sends[0], 0);
    assert_int_equal(p->sends[1], 0);
    assert_int_equal(p->sends[2], 10);
    assert_int_equal(p->recvs[0], 0);
    assert_int_equal(p->recvs[1], 6);
    assert_int_equal(p->recvs[2], 5);
    assert_int_equal(p->acks_out[2], 1);
    assert_int_equal(p->acks_out[1], 0);
    assert_int_equal(p->acks_in[1], 1);
    assert_int_equal(p->acks_in[2], 0);
    plan_free(p);
}

static void a_failed_allocation_is_reported_by_sealing(void **state)
{
    plan *p = new_plan(0, 2, 2);
    (void)state;
    p->failed = true;
    plan_repeat(p, 2, 1);
    plan_send(p, PLAN_SRC, 0, 1, PLAN_WIRE);
    plan_fold(p, true, PLAN_WIRE_DATA, PLAN_WIRE_DATA);
    plan_in(p, 0, PLAN_SRC, 0);
    plan_out(p, 0, PLAN_DST, 0);
    assert_int_equal(plan_seal(p), RING_ERR_MEMORY);
    plan_free(p);
}

static void names_and_factors_are_those_of_nccl_tests(void **state)
{
    (void)state;
    assert_string_equal(plan_collective_name(PLAN_REDUCE_SCATTER), "reduce_scatter");
    assert_string_equal(plan_collective_name(PLAN_RECV), "recv");
    assert_string_equal(plan_collective_name((plan_collective)99), "?");
    assert_float_equal(plan_bus_factor(PLAN_ALL_REDUCE, 4), 1.5, 1e-12);
    assert_float_equal(plan_bus_factor(PLAN_ALL_GATHER, 4), 0.75, 1e-12);
    assert_float_equal(plan_bus_factor(PLAN_REDUCE_SCATTER, 2), 0.5, 1e-12);
    assert_float_equal(plan_bus_factor(PLAN_BROADCAST, 8), 1, 1e-12);
    assert_float_equal(plan_bus_factor(PLAN_REDUCE, 8), 1, 1e-12);
    assert_true(plan_reduces(PLAN_REDUCE));
    assert_false(plan_reduces(PLAN_ALL_GATHER));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_plan_has_no_steps),
        cmocka_unit_test(steps_come_in_order_with_their_operands),
        cmocka_unit_test(repeated_blocks_shift_their_chunks_round_the_vector),
        cmocka_unit_test(blocks_repeated_zero_times_are_not_there),
        cmocka_unit_test(sealing_counts_messages_and_acknowledgements_apart),
        cmocka_unit_test(a_failed_allocation_is_reported_by_sealing),
        cmocka_unit_test(names_and_factors_are_those_of_nccl_tests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
