/* SPDX-License-Identifier: Apache-2.0
 * The checker itself: plans that are wrong in one way each are refused, with a text that says
 * which. Those that are wrong only in some schedules also fall to the adversary, so the
 * checker does not refuse them for nothing. */
#include "adversary.h"
#include "check.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static plan_set built(const char *algorithm, plan_collective collective, int ranks)
{
    const algo *a = algo_find(algorithm);
    const plan_case c = {a, collective, ranks, 0, a->chunks(collective, ranks, 0)};
    return plans_build(&c);
}

static plan_set two_empty(plan_collective collective)
{
    plan_set set = {.ranks = 2};
    for (int rank = 0; rank < 2; rank++) {
        set.of[rank] = plan_new(collective, "hand", rank, 2, 0, 2);
        assert_non_null(set.of[rank]);
    }
    return set;
}

static void seal(plan_set *set)
{
    for (int rank = 0; rank < set->ranks; rank++)
        assert_int_equal(plan_seal(set->of[rank]), RING_OK);
}

static void expect_refused(plan_set *set, const char *telling)
{
    plans_expect_refused(set, telling);
    plans_free(set);
}

static void expect_refused_and_broken(plan_set *set, const char *telling)
{
    if (adversary_attack(set, 2000) == NULL)
        fail_msg("the adversary cannot break what is refused for: %s", telling);
    expect_refused(set, telling);
}

/* A fold of two, at either rank in the order 0, 1. */
static void fold_two(plan *p, int chunk, plan_wire wire_in)
{
    const int peer = 1 - p->rank;
    plan_fold(p, true, wire_in, PLAN_WIRE_DATA);
    plan_in(p, 0, peer == 0 ? PLAN_WIRE : PLAN_SRC, chunk);
    plan_in(p, 1, peer == 1 ? PLAN_WIRE : PLAN_SRC, chunk);
    plan_out(p, p->rank, PLAN_DST, chunk);
}

/* ---- Progress -------------------------------------------------------------------- */

static void a_dropped_send_makes_somebody_wait(void **state)
{
    plan_set set = built("ring", PLAN_ALL_GATHER, 3);
    (void)state;
    plans_drop(&set, 1, plans_find(&set, 1, PLAN_STEP_SEND));
    expect_refused(&set, "expects chunk 1, but rank 1 sends chunk 0");
    set = built("direct", PLAN_BROADCAST, 3);
    plans_drop(&set, 0, plans_find(&set, 0, PLAN_STEP_SEND));
    expect_refused(&set, "(wait_ack of r1): waits for ever for rank 1");
}

static void a_dropped_recv_leaves_a_message(void **state)
{
    plan_set set = built("direct", PLAN_ALL_REDUCE, 3);
    (void)state;
    plans_drop(&set, 2, plans_find(&set, 2, PLAN_STEP_RECV));
    expect_refused(&set, "never takes the chunk");
}

static void ranks_that_all_receive_first_wait_for_ever(void **state)
{
    plan_set set = two_empty(PLAN_ALL_GATHER);
    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        plan_copy(set.of[rank], PLAN_SRC, rank, PLAN_DST, rank);
        plan_recv(set.of[rank], 1 - rank, PLAN_DST, 1 - rank);
        plan_send(set.of[rank], PLAN_SRC, rank, 1 - rank, PLAN_DST);
    }
    seal(&set);
    expect_refused(&set, "rank 0, step 1 (recv r1:dst[1] -> dst[1]): waits for ever for rank 1");
}

static void messages_in_another_order_than_expected_are_seen(void **state)
{
    plan_set set = built("chain", PLAN_BROADCAST, 2);
    (void)state;
    plans_free(&set);
    set = plans_build(&(plan_case){algo_find("chain"), PLAN_BROADCAST, 2, 0, 2});
    plan_set swapped = plans_copy(&set);
    plans_swap(&swapped, 0, 1);
    plans_free(&set);
    expect_refused(&swapped, "expects chunk 0, but rank 0 sends chunk 1");
}

/* On roomy links all is well; on others every rank waits for the next one to take. */
static void relays_round_a_circle_that_is_not_declared_are_seen(void **state)
{
    plan_set set = built("ring", PLAN_ALL_REDUCE, 3);
    (void)state;
    for (int rank = 0; rank < 3; rank++)
        set.of[rank]->circular = false;
    expect_refused_and_broken(&set, "waits for ever once links hold a segment: the plan is "
                                    "circular");
}

/* Both SENDs at once put more on the circle than its links hold. */
static void more_than_one_chunk_round_a_circle_is_seen(void **state)
{
    plan_set set = {.ranks = 3};
    (void)state;
    for (int rank = 0; rank < 3; rank++) {
        const int next = (rank + 1) % 3, previous = (rank + 2) % 3;
        plan *p = set.of[rank] = plan_new(PLAN_REDUCE_SCATTER, "hand", rank, 3, 0, 6);
        assert_non_null(p);
        p->circular = true;
        for (int k = 0; k < 2; k++)
            plan_send(p, PLAN_SRC, 2 * previous + k, next, PLAN_WIRE);
        for (int k = 0; k < 4; k++) {
            const bool finish = k >= 2;
            const int chunk = 2 * (finish ? rank : next) + k % 2;
            plan_fold(p, finish, finish ? PLAN_WIRE_ACC : PLAN_WIRE_DATA, PLAN_WIRE_ACC);
            plan_in(p, previous, PLAN_WIRE, chunk);
            plan_in(p, rank, PLAN_SRC, chunk);
            plan_out(p, finish ? rank : next, finish ? PLAN_DST : PLAN_WIRE, chunk);
        }
        plan_ack(p, previous);
        plan_wait_ack(p, next);
    }
    seal(&set);
    expect_refused_and_broken(&set, "waits for ever once links hold a chunk and a segment");
}

static plan_set slices_in_a_row(const char *algorithm, plan_collective collective, int slices)
{
    plan_set once = built(algorithm, collective, 3), longer = {.ranks = 3};
    for (int rank = 0; rank < 3; rank++) {
        longer.of[rank] = check_slices(once.of[rank], slices);
        assert_non_null(longer.of[rank]);
        assert_int_equal(plan_length(longer.of[rank]), slices * plan_length(once.of[rank]));
    }
    plans_free(&once);
    return longer;
}

/* Slices in a row are a longer plan; what is wrong in the second one alone is seen. */
static void every_slice_of_a_circular_plan_is_proven(void **state)
{
    plan_set whole = slices_in_a_row("ring", PLAN_REDUCE_SCATTER, 2), broken = plans_copy(&whole);
    (void)state;
    plans_expect_proven(&whole);
    plans_drop_message(&broken, 0, 1, 3); /* each slice has two of them */
    expect_refused(&broken, "expects chunk 1, but rank 2 sends chunk 3");
    const int wait_of_the_last_ack = (int)plan_length(whole.of[1]) - 1;
    plans_drop(&whole, 1, wait_of_the_last_ack);
    expect_refused(&whole, "rank 1 never takes the acknowledgement of 2");
}

/* ---- Both ends of a message -------------------------------------------------------- */

static void a_message_for_another_place_is_seen(void **state)
{
    plan_set set = two_empty(PLAN_REDUCE_SCATTER);
    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        plan_send(set.of[rank], PLAN_SRC, 1 - rank, 1 - rank, PLAN_DST);
        fold_two(set.of[rank], rank, PLAN_WIRE_DATA);
    }
    seal(&set);
    expect_refused(&set, "takes a message for wire, but rank 0 sends it for dst");
}

static void a_message_of_another_type_is_seen(void **state)
{
    plan_set set = two_empty(PLAN_REDUCE_SCATTER);
    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        plan_send(set.of[rank], PLAN_SRC, 1 - rank, 1 - rank, PLAN_WIRE);
        fold_two(set.of[rank], rank, PLAN_WIRE_ACC);
    }
    seal(&set);
    expect_refused(&set, "takes the accumulator's type, but rank 0 sends the data type");
}

/* ---- Results --------------------------------------------------------------------- */

static void a_dropped_copy_leaves_a_chunk_empty(void **state)
{
    plan_set set = built("ring", PLAN_ALL_GATHER, 4);
    (void)state;
    plans_drop(&set, 3, plans_find(&set, 3, PLAN_STEP_COPY));
    expect_refused(&set, "rank 3 ends with dst chunk 3 empty");
}

static void a_contribution_that_is_missing_is_named(void **state)
{
    plan_set set = built("direct", PLAN_REDUCE_SCATTER, 4);
    (void)state;
    plans_drop_message(&set, 2, 1, 0);
    expect_refused(&set, "rank 1 ends with dst chunk 1 without rank 2's contribution");
}

static void a_contribution_that_comes_twice_is_named(void **state)
{
    plan_set set = two_empty(PLAN_REDUCE_SCATTER);
    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        plan *p = set.of[rank];
        plan_send(p, PLAN_SRC, 1 - rank, 1 - rank, PLAN_WIRE);
        fold_two(p, rank, PLAN_WIRE_DATA);
        plan_step *fold = &p->steps[p->step_count - 1];
        p->locs[fold->first_in] = p->locs[fold->first_in + 1] =
            (plan_loc){.rank = rank, .chunk = rank, .buffer = PLAN_SRC};
        plan_recv(p, 1 - rank, PLAN_DST, rank);
    }
    seal(&set);
    expect_refused(&set, "adds rank 0's chunk 0 twice");
}

static void ranks_that_combine_in_other_orders_are_seen(void **state)
{
    plan_set set = built("direct", PLAN_ALL_REDUCE, 3);
    (void)state;
    plans_expect_proven(&set);
    plans_free(&set);
    set = two_empty(PLAN_ALL_REDUCE);
    for (int rank = 0; rank < 2; rank++) {
        plan *p = set.of[rank];
        for (int chunk = 0; chunk < 2; chunk++)
            plan_send(p, PLAN_SRC, chunk, 1 - rank, PLAN_WIRE);
        for (int chunk = 0; chunk < 2; chunk++) {
            plan_fold(p, true, PLAN_WIRE_DATA, PLAN_WIRE_DATA);
            plan_in(p, rank, PLAN_SRC, chunk);
            plan_in(p, 1 - rank, PLAN_WIRE, chunk);
            plan_out(p, rank, PLAN_DST, chunk);
        }
        plan_ack(p, 1 - rank);
        plan_wait_ack(p, 1 - rank);
    }
    seal(&set);
    expect_refused(&set, "rank 1 ends with dst chunk 0 combined in another order than elsewhere");
}

static void a_finished_chunk_is_not_folded_again(void **state)
{
    plan_set set = two_empty(PLAN_ALL_REDUCE);
    (void)state;
    for (int chunk = 0; chunk < 2; chunk++) {
        plan_send(set.of[0], PLAN_SRC, chunk, 1, PLAN_WIRE);
        fold_two(set.of[1], chunk, PLAN_WIRE_DATA);
        plan_send(set.of[1], PLAN_DST, chunk, 0, PLAN_WIRE);
        plan_fold(set.of[0], true, PLAN_WIRE_DATA, PLAN_WIRE_DATA);
        plan_in(set.of[0], 1, PLAN_WIRE, chunk);
        plan_out(set.of[0], 0, PLAN_DST, chunk);
    }
    seal(&set);
    expect_refused(&set, "folds chunk 0 that is finished already");
}

static void a_chunk_of_somebody_else_is_not_the_result(void **state)
{
    plan_set set = two_empty(PLAN_BROADCAST);
    (void)state;
    for (int chunk = 0; chunk < 2; chunk++) {
        plan_copy(set.of[0], PLAN_SRC, chunk, PLAN_DST, chunk);
        plan_copy(set.of[1], PLAN_SRC, chunk, PLAN_DST, chunk);
    }
    seal(&set);
    expect_refused(&set, "this rank has no src chunk 0");
}

static void a_chunk_is_not_read_before_it_is_there(void **state)
{
    plan_set set = two_empty(PLAN_BROADCAST);
    (void)state;
    plan_send(set.of[0], PLAN_DST, 0, 1, PLAN_DST);
    plan_recv(set.of[1], 0, PLAN_DST, 0);
    seal(&set);
    expect_refused(&set, "reads dst chunk 0 before anything is there");
}

static void a_barrier_waits_for_everybody(void **state)
{
    plan_set set = built("direct", PLAN_BARRIER, 3);
    (void)state;
    plans_drop_message(&set, 0, 2, 0);
    expect_refused_and_broken(&set, "rank 2 may leave before rank 0 has come");
}

/* ---- Memory ---------------------------------------------------------------------- */

static void a_missing_acknowledgement_is_seen(void **state)
{
    plan_set set = built("ring", PLAN_ALL_REDUCE, 3);
    (void)state;
    plans_drop_ack(&set, 1, 0);
    expect_refused_and_broken(&set, "an acknowledgement is missing");
    set = built("direct", PLAN_ALL_GATHER, 3);
    plans_drop_ack(&set, 1, 0);
    expect_refused_and_broken(&set, "rank 0 may leave before rank 1 has read its chunk 0");
}

static void an_acknowledgement_before_the_reading_is_seen(void **state)
{
    plan_set set = two_empty(PLAN_BROADCAST);
    (void)state;
    for (int chunk = 0; chunk < 2; chunk++) {
        plan_send(set.of[0], PLAN_SRC, chunk, 1, PLAN_DST);
        plan_copy(set.of[0], PLAN_SRC, chunk, PLAN_DST, chunk);
        plan_recv(set.of[1], 0, PLAN_DST, chunk);
        if (chunk == 0)
            plan_ack(set.of[1], 0);
    }
    plan_wait_ack(set.of[0], 1);
    seal(&set);
    expect_refused_and_broken(&set, "waits for an acknowledgement of 2 messages, but rank 1 "
                                    "acknowledges 1");
}

static void an_acknowledgement_among_messages_is_seen(void **state)
{
    plan_set set = two_empty(PLAN_ALL_GATHER);
    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        plan *p = set.of[rank];
        plan_send(p, PLAN_SRC, rank, 1 - rank, PLAN_DST);
        plan_copy(p, PLAN_SRC, rank, PLAN_DST, rank);
        if (rank == 0)
            plan_wait_ack(p, 1);
        plan_recv(p, 1 - rank, PLAN_DST, 1 - rank);
        plan_ack(p, 1 - rank);
        if (rank == 1)
            plan_wait_ack(p, 0);
    }
    seal(&set);
    expect_refused_and_broken(&set, "expects an acknowledgement, but rank 1 sends chunk 1");
}

/* Both give their chunk to the other and fold: in place, the fold may destroy what the other
 * has not read yet. */
static void a_chunk_overwritten_while_it_is_read_is_seen(void **state)
{
    plan_set set = two_empty(PLAN_ALL_REDUCE);
    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        for (int chunk = 0; chunk < 2; chunk++)
            plan_send(set.of[rank], PLAN_SRC, chunk, 1 - rank, PLAN_WIRE);
        for (int chunk = 0; chunk < 2; chunk++)
            fold_two(set.of[rank], chunk, PLAN_WIRE_DATA);
        plan_ack(set.of[rank], 1 - rank);
        plan_wait_ack(set.of[rank], 1 - rank);
    }
    seal(&set);
    expect_refused_and_broken(&set, "in place: rank 0, step 2 (fold src[0] + r1:wire[0] -> "
                                    "dst[0], finished) overwrites a chunk too early");
}

static void a_store_before_the_peer_is_known_to_be_in_the_call_is_seen(void **state)
{
    plan_set set = two_empty(PLAN_ALL_REDUCE);
    (void)state;
    for (int chunk = 0; chunk < 2; chunk++) {
        plan_fold(set.of[0], true, PLAN_WIRE_DATA, PLAN_WIRE_DATA);
        plan_in(set.of[0], 0, PLAN_SRC, chunk);
        plan_out(set.of[0], 0, PLAN_DST, chunk);
        plan_out(set.of[0], 1, PLAN_DST, chunk);
        plan_recv(set.of[1], 0, PLAN_DST, chunk);
    }
    seal(&set);
    expect_refused(&set, "stores into rank 1 before any message from it");
}

/* Rank 0 stores the sum into rank 1 while rank 1 may still read its own chunk there. */
static void a_store_into_a_chunk_that_is_still_read_is_seen(void **state)
{
    plan_set set = two_empty(PLAN_ALL_REDUCE);
    (void)state;
    for (int chunk = 0; chunk < 2; chunk++) {
        plan_send(set.of[1], PLAN_SRC, chunk, 0, PLAN_WIRE);
        fold_two(set.of[0], chunk, PLAN_WIRE_DATA);
        plan_out(set.of[0], 1, PLAN_DST, chunk);
    }
    for (int chunk = 0; chunk < 2; chunk++) { /* writes what is stored meanwhile */
        plan_fold(set.of[1], true, PLAN_WIRE_DATA, PLAN_WIRE_DATA);
        plan_in(set.of[1], 1, PLAN_SRC, chunk);
        plan_out(set.of[1], 1, PLAN_DST, chunk);
        plan_recv(set.of[1], 0, PLAN_DST, chunk);
    }
    seal(&set);
    expect_refused_and_broken(&set, "overwrites a chunk too early or too late: rank");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dropped_send_makes_somebody_wait),
        cmocka_unit_test(a_dropped_recv_leaves_a_message),
        cmocka_unit_test(ranks_that_all_receive_first_wait_for_ever),
        cmocka_unit_test(messages_in_another_order_than_expected_are_seen),
        cmocka_unit_test(relays_round_a_circle_that_is_not_declared_are_seen),
        cmocka_unit_test(more_than_one_chunk_round_a_circle_is_seen),
        cmocka_unit_test(every_slice_of_a_circular_plan_is_proven),
        cmocka_unit_test(a_message_for_another_place_is_seen),
        cmocka_unit_test(a_message_of_another_type_is_seen),
        cmocka_unit_test(a_dropped_copy_leaves_a_chunk_empty),
        cmocka_unit_test(a_contribution_that_is_missing_is_named),
        cmocka_unit_test(a_contribution_that_comes_twice_is_named),
        cmocka_unit_test(ranks_that_combine_in_other_orders_are_seen),
        cmocka_unit_test(a_finished_chunk_is_not_folded_again),
        cmocka_unit_test(a_chunk_of_somebody_else_is_not_the_result),
        cmocka_unit_test(a_chunk_is_not_read_before_it_is_there),
        cmocka_unit_test(a_barrier_waits_for_everybody),
        cmocka_unit_test(a_missing_acknowledgement_is_seen),
        cmocka_unit_test(an_acknowledgement_before_the_reading_is_seen),
        cmocka_unit_test(an_acknowledgement_among_messages_is_seen),
        cmocka_unit_test(a_chunk_overwritten_while_it_is_read_is_seen),
        cmocka_unit_test(a_store_before_the_peer_is_known_to_be_in_the_call_is_seen),
        cmocka_unit_test(a_store_into_a_chunk_that_is_still_read_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
