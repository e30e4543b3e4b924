/* SPDX-License-Identifier: Apache-2.0
 * The checker itself: plans that are wrong in one way each are refused, with a text that says
 * which. Those that are wrong only in some schedules also fall to the adversary, so the
 * checker does not refuse them for nothing. */
#include "adversary.h"
#include "checker.h"

#include <string.h>

#include "unit_test.h"

static plan_set built(const char *algorithm, plan_collective collective, int ranks)
{
    const algo *a = algo_find(algorithm);
    const plan_world world = plans_world(ranks, 0);
    const plan_case c = {a, collective, ranks, 0, a->chunks(collective, &world, 0), 0};
    return plans_build(&c);
}

static plan_set two_empty(plan_collective collective)
{
    plan_set set = {.ranks = 2};
    const int chunks = collective == PLAN_ALL_TO_ALL ? 4 : 2;
    for (int rank = 0; rank < 2; rank++) {
        set.of[rank] = plan_new(collective, "hand", rank, 2, 0, chunks);
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

static void fold_operand(plan *p, int rank, plan_wire wire)
{
    if (rank == p->rank)
        plan_fold_local(p, PLAN_SRC);
    else
        plan_fold_message(p, rank, wire);
}

/* A fold of two, at either rank in the order 0, 1. */
static void fold_two(plan *p, int chunk, plan_wire wire)
{
    plan_fold(p, chunk, 1);
    fold_operand(p, 0, wire);
    fold_operand(p, 1, wire);
    plan_fold_into(p, PLAN_DST);
}

static void fold_alone(plan *p, int chunk)
{
    plan_fold(p, chunk, 1);
    plan_fold_local(p, PLAN_SRC);
    plan_fold_into(p, PLAN_DST);
}

/* ---- Progress -------------------------------------------------------------------- */

static void a_dropped_send_makes_somebody_wait(void **state)
{
    plan_set set = built("ring", PLAN_ALL_GATHER, 3);
    plans_drop(&set, 1, plans_find(&set, 1, PLAN_STEP_SEND));
    expect_refused(&set, "expects chunk 1, but rank 1 sends chunk 0");
    set = built("direct", PLAN_BROADCAST, 3);
    plans_drop(&set, 0, plans_find(&set, 0, PLAN_STEP_SEND));
    expect_refused(&set, "(wait for r1): waits for a rank it never sends to");
    set = built("direct", PLAN_REDUCE, 3);
    plans_drop(&set, 1, plans_find(&set, 1, PLAN_STEP_SEND));
    expect_refused(&set, "expects chunk 0, but rank 1 sends chunk 1");
}

static void a_dropped_recv_leaves_a_message(void **state)
{
    plan_set set = built("direct", PLAN_ALL_REDUCE, 3);
    plans_drop(&set, 2, plans_find(&set, 2, PLAN_STEP_RECV));
    expect_refused(&set, "never takes the chunk");
}

static void ranks_that_all_receive_first_wait_for_ever(void **state)
{
    plan_set set = two_empty(PLAN_ALL_GATHER);
    for (int rank = 0; rank < 2; rank++) {
        plan_copy(set.of[rank], PLAN_SRC, rank, PLAN_DST, rank, 1);
        plan_recv(set.of[rank], 1 - rank, PLAN_DST, 1 - rank, 1);
        plan_send(set.of[rank], PLAN_SRC, rank, 1, 1 - rank, PLAN_DST);
    }
    seal(&set);
    expect_refused(&set, "rank 0, step 1 (recv r1:dst[1] -> dst[1]): waits for ever for rank 1");
}

static void messages_in_another_order_than_expected_are_seen(void **state)
{
    plan_set set = plans_build(&(plan_case){algo_find("chain"), PLAN_BROADCAST, 2, 0, 2, 0});
    plan_set swapped = plans_copy(&set);
    plans_swap(&swapped, 0, 1);
    plans_free(&set);
    expect_refused(&swapped, "expects chunk 0, but rank 0 sends chunk 1");
}

/* On roomy links all is well; on others every rank waits for the next one to take. */
static void relays_round_a_circle_that_is_not_declared_are_seen(void **state)
{
    plan_set set = built("ring", PLAN_ALL_REDUCE, 3);
    for (int rank = 0; rank < 3; rank++)
        set.of[rank]->circular = false;
    expect_refused_and_broken(&set, "waits for ever if links hold only a segment; a plan");
}

/* Both SENDs at once put more on the circle than its links hold. */
static void more_than_one_chunk_round_a_circle_is_seen(void **state)
{
    plan_set set = {.ranks = 3};
    for (int rank = 0; rank < 3; rank++) {
        const int next = (rank + 1) % 3, previous = (rank + 2) % 3;
        plan *p = set.of[rank] = plan_new(PLAN_REDUCE_SCATTER, "hand", rank, 3, 0, 6);
        assert_non_null(p);
        p->circular = true;
        for (int k = 0; k < 2; k++)
            plan_send(p, PLAN_SRC, 2 * previous + k, 1, next, PLAN_WIRE);
        for (int k = 0; k < 4; k++) {
            const bool finish = k >= 2;
            const int chunk = 2 * (finish ? rank : next) + k % 2;
            plan_fold(p, chunk, 1);
            plan_fold_message(p, previous, finish ? PLAN_WIRE_ACC : PLAN_WIRE_DATA);
            plan_fold_local(p, PLAN_SRC);
            if (finish)
                plan_fold_into(p, PLAN_DST);
            else
                plan_fold_to(p, next, PLAN_WIRE);
        }
        plan_wait(p, next, 0);
    }
    seal(&set);
    expect_refused_and_broken(&set, "waits for ever if links hold only a chunk and a segment");
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
    plans_expect_proven(&whole);
    plans_drop_message(&broken, 0, 1, 3); /* each slice has two of them */
    expect_refused(&broken, "expects chunk 1, but rank 2 sends chunk 3");
    const int last_wait = (int)plan_length(whole.of[1]) - 1;
    plans_drop(&whole, 1, last_wait);
    expect_refused(&whole, "rank 1 may leave before rank 2 has read its chunk 1");
}

/* ---- Both ends of a message -------------------------------------------------------- */

static void a_message_for_another_place_is_seen(void **state)
{
    plan_set set = two_empty(PLAN_REDUCE_SCATTER);
    for (int rank = 0; rank < 2; rank++) {
        plan_send(set.of[rank], PLAN_SRC, 1 - rank, 1, 1 - rank, PLAN_DST);
        fold_two(set.of[rank], rank, PLAN_WIRE_DATA);
    }
    seal(&set);
    expect_refused(&set, "takes a message for wire, but rank 0 sends it for dst");
}

static void a_message_of_another_type_is_seen(void **state)
{
    plan_set set = two_empty(PLAN_REDUCE_SCATTER);
    for (int rank = 0; rank < 2; rank++) {
        plan_send(set.of[rank], PLAN_SRC, 1 - rank, 1, 1 - rank, PLAN_WIRE);
        fold_two(set.of[rank], rank, PLAN_WIRE_ACC);
    }
    seal(&set);
    expect_refused(&set, "takes the accumulator's type, but rank 0 sends the data type");
}

/* ---- Results --------------------------------------------------------------------- */

static void a_dropped_copy_leaves_a_chunk_empty(void **state)
{
    plan_set set = built("ring", PLAN_ALL_GATHER, 4);
    plans_drop(&set, 3, plans_find(&set, 3, PLAN_STEP_COPY));
    expect_refused(&set, "rank 3 ends with dst chunk 3 empty");
}

static void a_contribution_that_is_missing_is_named(void **state)
{
    plan_set set = built("oneshot", PLAN_REDUCE_SCATTER, 4);
    plans_drop_message(&set, 2, 1, 0);
    expect_refused(&set, "rank 1 ends with dst chunk 1 without rank 2's contribution");
}

static void a_contribution_that_comes_twice_is_named(void **state)
{
    plan_set set = two_empty(PLAN_REDUCE_SCATTER);
    for (int rank = 0; rank < 2; rank++) {
        plan *p = set.of[rank];
        plan_send(p, PLAN_SRC, 1 - rank, 1, 1 - rank, PLAN_WIRE);
        plan_fold(p, rank, 1);
        plan_fold_local(p, PLAN_SRC);
        plan_fold_local(p, PLAN_SRC);
        plan_fold_into(p, PLAN_DST);
    }
    seal(&set);
    expect_refused(&set, "adds rank 0's chunk 0 twice");
}

static void ranks_that_combine_in_other_orders_are_seen(void **state)
{
    plan_set set = built("direct", PLAN_ALL_REDUCE, 3);
    plans_expect_proven(&set);
    plans_free(&set);
    set = two_empty(PLAN_ALL_REDUCE);
    for (int rank = 0; rank < 2; rank++) {
        plan *p = set.of[rank];
        for (int chunk = 0; chunk < 2; chunk++)
            plan_send_eager(p, PLAN_SRC, chunk, 1, 1 - rank, PLAN_WIRE);
        for (int chunk = 0; chunk < 2; chunk++) {
            plan_fold(p, chunk, 1);
            plan_fold_local(p, PLAN_SRC);
            plan_fold_message(p, 1 - rank, PLAN_WIRE_DATA);
            plan_fold_into(p, PLAN_DST);
        }
    }
    seal(&set);
    expect_refused(&set,
                   "rank 1 ends with dst chunk 0 combined in another order than on other ranks");
}

/* Rank 1's chunks by @p rank_1, rank 0's as they should be. */
static plan_set two_prefixes(void (*rank_1)(plan *p, int chunk))
{
    plan_set set = two_empty(PLAN_SCAN);
    for (int chunk = 0; chunk < 2; chunk++) {
        plan_fold(set.of[0], chunk, 1);
        plan_fold_local(set.of[0], PLAN_SRC);
        plan_fold_into(set.of[0], PLAN_DST);
        plan_fold_to(set.of[0], 1, PLAN_WIRE);
        rank_1(set.of[1], chunk);
    }
    seal(&set);
    return set;
}

static void fold_in_rank_order(plan *p, int chunk)
{
    plan_fold(p, chunk, 1);
    plan_fold_message(p, 0, PLAN_WIRE_ACC);
    plan_fold_local(p, PLAN_SRC);
    plan_fold_into(p, PLAN_DST);
}

static void fold_own_first(plan *p, int chunk)
{
    plan_fold(p, chunk, 1);
    plan_fold_local(p, PLAN_SRC);
    plan_fold_message(p, 0, PLAN_WIRE_ACC);
    plan_fold_into(p, PLAN_DST);
}

static void fold_the_other_only(plan *p, int chunk)
{
    plan_fold(p, chunk, 1);
    plan_fold_message(p, 0, PLAN_WIRE_ACC);
    plan_fold_into(p, PLAN_DST);
}

static void a_prefix_is_combined_in_the_order_of_ranks(void **state)
{
    plan_set set = two_prefixes(fold_in_rank_order);
    plans_expect_proven(&set);
    plans_free(&set);
    set = two_prefixes(fold_own_first);
    expect_refused(&set, "rank 1 ends with dst chunk 0 not combined in the order of ranks");
    set = two_prefixes(fold_the_other_only);
    expect_refused(&set, "rank 1 ends with dst chunk 0 without rank 1's contribution");
}

static void a_prefix_has_nothing_of_later_ranks(void **state)
{
    plan_set set = two_empty(PLAN_EXSCAN);
    for (int chunk = 0; chunk < 2; chunk++) {
        plan_send_eager(set.of[0], PLAN_SRC, chunk, 1, 1, PLAN_WIRE);
        fold_two(set.of[1], chunk, PLAN_WIRE_DATA);
    }
    seal(&set);
    expect_refused(&set, "rank 1 ends with dst chunk 0 with rank 1's contribution");
    set = two_empty(PLAN_EXSCAN);
    plan_copy(set.of[0], PLAN_SRC, 0, PLAN_DST, 0, 2);
    seal(&set);
    expect_refused(&set, "uses dst chunk 0, which the rank does not have");
}

static void a_finished_chunk_is_not_folded_again(void **state)
{
    plan_set set = two_empty(PLAN_ALL_REDUCE);
    for (int chunk = 0; chunk < 2; chunk++) {
        plan_send(set.of[0], PLAN_SRC, chunk, 1, 1, PLAN_WIRE);
        fold_two(set.of[1], chunk, PLAN_WIRE_DATA);
        plan_send(set.of[1], PLAN_DST, chunk, 1, 0, PLAN_WIRE);
        plan_fold(set.of[0], chunk, 1);
        plan_fold_message(set.of[0], 1, PLAN_WIRE_DATA);
        plan_fold_into(set.of[0], PLAN_DST);
    }
    seal(&set);
    expect_refused(&set, "folds chunk 0, which is already finished");
}

static void a_chunk_of_somebody_else_is_not_the_result(void **state)
{
    plan_set set = two_empty(PLAN_BROADCAST);
    for (int chunk = 0; chunk < 2; chunk++) {
        plan_copy(set.of[0], PLAN_SRC, chunk, PLAN_DST, chunk, 1);
        plan_copy(set.of[1], PLAN_SRC, chunk, PLAN_DST, chunk, 1);
    }
    seal(&set);
    expect_refused(&set, "uses src chunk 0, which the rank does not have");
}

static void a_chunk_is_not_read_before_it_is_there(void **state)
{
    plan_set set = two_empty(PLAN_BROADCAST);
    plan_send(set.of[0], PLAN_DST, 0, 1, 1, PLAN_DST);
    plan_recv(set.of[1], 0, PLAN_DST, 0, 1);
    seal(&set);
    expect_refused(&set, "reads dst chunk 0 before it is written");
}

static void a_barrier_waits_for_everybody(void **state)
{
    plan_set set = built("direct", PLAN_BARRIER, 3);
    plans_drop_message(&set, 0, 2, 0);
    expect_refused_and_broken(&set, "rank 2 may leave the barrier before rank 0 has entered it");
}

/* ---- Ranges and scratch ----------------------------------------------------------- */

/* Rank 1's contribution comes to rank 0 as a sum, which rests in scratch before it is added. */
static plan_set through_scratch(int kept, int chunks)
{
    plan_set set = two_empty(PLAN_REDUCE);
    plan *p = set.of[0];
    plan_fold(set.of[1], 0, 2);
    plan_fold_local(set.of[1], PLAN_SRC);
    plan_fold_to(set.of[1], 0, PLAN_WIRE);
    plan_fold(p, 0, 2);
    plan_fold_local(p, PLAN_SRC);
    plan_fold_message(p, 1, PLAN_WIRE_ACC);
    plan_fold_into(p, PLAN_SCRATCH);
    plan_fold(p, kept, chunks);
    plan_fold_local(p, PLAN_SCRATCH);
    plan_fold_into(p, PLAN_DST);
    seal(&set);
    return set;
}

static void sums_may_rest_in_scratch(void **state)
{
    plan_set set = through_scratch(0, 2);
    plans_expect_proven(&set);
    assert_null(adversary_attack(&set, 200));
    plans_free(&set);
    set = through_scratch(0, 1);
    expect_refused(&set, "rank 0 ends with dst chunk 1 empty");
}

static void scratch_is_not_read_before_it_is_written(void **state)
{
    plan_set set = built("halving", PLAN_ALL_REDUCE, 3);
    plans_drop(&set, 0, plans_find(&set, 0, PLAN_STEP_FOLD)); /* that of the spare's */
    expect_refused(&set, "reads scratch chunk 1 before it is written");
}

static void the_ends_of_a_message_agree_on_its_range(void **state)
{
    plan_set set = built("halving", PLAN_ALL_REDUCE, 4);
    plan_step *step = plans_step(&set, 2, plans_find(&set, 2, PLAN_STEP_SEND));
    set.of[2]->locs[step->first_in].chunks = set.of[2]->locs[step->first_out].chunks = 1;
    expect_refused(&set, "expects chunk 2..3, but rank 2 sends chunk 2");
}

static void an_unfinished_chunk_does_not_come_to_dst(void **state)
{
    plan_set set = two_empty(PLAN_ALL_REDUCE);
    for (int rank = 0; rank < 2; rank++) {
        plan_send_eager(set.of[rank], PLAN_SRC, 0, 2, 1 - rank, PLAN_DST);
        plan_recv(set.of[rank], 1 - rank, PLAN_DST, 0, 2);
    }
    seal(&set);
    expect_refused(&set, "puts an unfinished chunk into dst");
    set = two_empty(PLAN_ALL_REDUCE);
    plan_copy(set.of[0], PLAN_SRC, 0, PLAN_DST, 0, 2);
    seal(&set);
    expect_refused(&set, "puts an unfinished chunk into dst");
}

static void a_range_is_not_copied_onto_a_part_of_itself(void **state)
{
    plan_set set = {.ranks = 2};
    for (int rank = 0; rank < 2; rank++) {
        set.of[rank] = plan_new(PLAN_ALL_GATHER, "hand", rank, 2, 0, 6);
        assert_non_null(set.of[rank]);
        plan_copy(set.of[rank], PLAN_SRC, 3 * rank, PLAN_DST, 3 * rank, 3);
    }
    plan_copy(set.of[0], PLAN_DST, 0, PLAN_DST, 2, 3);
    seal(&set);
    expect_refused(&set, "copies a range onto a part of itself");
}

/* Rank 0 adds all that it gets and relays the sum to the other two, which finish it. */
static plan_set two_relays(bool both_finish)
{
    plan_set set = {.ranks = 3};
    for (int rank = 0; rank < 3; rank++)
        set.of[rank] = plan_new(PLAN_ALL_REDUCE, "hand", rank, 3, 0, 2);
    plan *p = set.of[0];
    plan_fold(p, 0, 2);
    plan_fold_local(p, PLAN_SRC);
    for (int rank = 1; rank < 3; rank++)
        plan_fold_message(p, rank, PLAN_WIRE_DATA);
    plan_fold_into(p, PLAN_DST);
    for (int rank = 1; rank < 3; rank++)
        plan_fold_to(p, rank, PLAN_WIRE);
    for (int rank = 1; rank < 3; rank++) {
        plan_send(set.of[rank], PLAN_SRC, 0, 2, 0, PLAN_WIRE);
        if (rank == 2 && !both_finish)
            break;
        plan_fold(set.of[rank], 0, 2);
        plan_fold_message(set.of[rank], 0, PLAN_WIRE_ACC);
        plan_fold_into(set.of[rank], PLAN_DST);
    }
    seal(&set);
    return set;
}

static void a_fold_may_relay_to_several(void **state)
{
    plan_set set = two_relays(true);
    plans_expect_proven(&set);
    assert_null(adversary_attack(&set, 500));
    plans_free(&set);
    set = two_relays(false);
    expect_refused(&set, "rank 2 never takes the chunk 0 that rank 0 sends");
}

/* Rank 1 sends nothing back, so rank 0 cannot know that it may reuse the scratch. */
static void scratch_is_not_written_again_in_the_next_slice_while_it_is_lent(void **state)
{
    plan_set set = two_empty(PLAN_REDUCE);
    for (int rank = 0; rank < 2; rank++)
        set.of[rank]->root = 1;
    plan_fold(set.of[0], 0, 2);
    plan_fold_local(set.of[0], PLAN_SRC);
    plan_fold_into(set.of[0], PLAN_SCRATCH);
    plan_fold_to(set.of[0], 1, PLAN_WIRE); /* may be sent from the scratch */
    plan_fold(set.of[1], 0, 2);
    plan_fold_message(set.of[1], 0, PLAN_WIRE_ACC);
    plan_fold_local(set.of[1], PLAN_SRC);
    plan_fold_into(set.of[1], PLAN_DST);
    seal(&set);
    plan_set waiting = plans_copy(&set);
    expect_refused_and_broken(&set, "-> scratch[4], r1:wire[4]) overwrites");
    plan_wait(waiting.of[0], 1, 0);
    plans_expect_proven(&waiting);
    assert_null(adversary_attack(&waiting, 500));
    plans_free(&waiting);
}

/* Rank 0 gives rank 1 its sum. From the second slice on it has heard of rank 1, so it may store it
 * there, while rank 1 may still read its own chunk for its second message. */
static plan_set eager_sums(int first_to, int second_to)
{
    plan_set set = {.ranks = 3};
    for (int rank = 0; rank < 3; rank++)
        assert_non_null(set.of[rank] = plan_new(PLAN_ALL_REDUCE, "hand", rank, 3, 0, 1));
    plan_send_eager(set.of[1], PLAN_SRC, 0, 1, first_to, PLAN_WIRE);
    plan_send_eager(set.of[1], PLAN_SRC, 0, 1, second_to, PLAN_WIRE);
    plan_recv(set.of[1], 0, PLAN_DST, 0, 1);
    plan_fold(set.of[2], 0, 1);
    plan_fold_message(set.of[2], 1, PLAN_WIRE_DATA);
    plan_fold_local(set.of[2], PLAN_SRC);
    plan_fold_to(set.of[2], 0, PLAN_WIRE);
    plan_send_eager(set.of[2], PLAN_SRC, 0, 1, 0, PLAN_WIRE);
    plan_recv(set.of[2], 0, PLAN_DST, 0, 1);
    plan_fold(set.of[0], 0, 1);
    plan_fold_message(set.of[0], 2, PLAN_WIRE_ACC);
    plan_fold_local(set.of[0], PLAN_SRC);
    plan_fold_to(set.of[0], 1, PLAN_DST);
    plan_fold(set.of[0], 0, 1);
    plan_fold_message(set.of[0], 1, PLAN_WIRE_DATA);
    plan_fold_message(set.of[0], 2, PLAN_WIRE_DATA);
    plan_fold_local(set.of[0], PLAN_SRC);
    plan_fold_into(set.of[0], PLAN_DST);
    plan_fold_to(set.of[0], 2, PLAN_DST);
    seal(&set);
    return set;
}

static void a_store_that_is_too_early_in_later_slices_is_seen(void **state)
{
    plan_set set = eager_sums(2, 0);
    expect_refused_and_broken(&set, "in place: rank 0, step 2 (fold r2:wire[1]");
    set = eager_sums(0, 2);
    plans_expect_proven(&set);
    assert_null(adversary_attack(&set, 1000));
    plans_free(&set);
}

/* Slices cut ranges, and a wait of a slice spares so many chunks: here the half of the message that
 * rank 1 takes only when rank 0 has gone on. */
static void a_wait_that_spares_a_part_of_a_range_is_seen(void **state)
{
    plan_set set = {.ranks = 3};
    for (int rank = 0; rank < 3; rank++)
        assert_non_null(set.of[rank] = plan_new(PLAN_BROADCAST, "hand", rank, 3, 0, 2));
    plan_send(set.of[0], PLAN_SRC, 0, 2, 1, PLAN_DST);
    plan_wait(set.of[0], 1, 1);
    plan_send(set.of[0], PLAN_SRC, 0, 2, 2, PLAN_DST);
    plan_copy(set.of[0], PLAN_SRC, 0, PLAN_DST, 0, 2);
    plan_wait(set.of[0], 1, 0);
    plan_wait(set.of[0], 2, 0);
    plan_recv(set.of[2], 0, PLAN_DST, 0, 2);
    plan_send_eager(set.of[2], PLAN_DST, 0, 2, 1, PLAN_DST);
    plan_recv(set.of[1], 2, PLAN_DST, 0, 2);
    plan_recv(set.of[1], 0, PLAN_DST, 0, 2);
    seal(&set);
    expect_refused_and_broken(&set,
                              "rank 0, step 2 (wait for r1 except the last 1): waits for ever");
}

/* ---- Memory ---------------------------------------------------------------------- */

static void a_missing_wait_is_seen(void **state)
{
    plan_set set = built("ring", PLAN_ALL_REDUCE, 3);
    plans_drop(&set, 0, plans_find(&set, 0, PLAN_STEP_WAIT));
    expect_refused_and_broken(&set, "a wait is missing");
    set = built("direct", PLAN_ALL_GATHER, 3);
    plans_drop(&set, 0, plans_find(&set, 0, PLAN_STEP_WAIT));
    expect_refused_and_broken(&set, "rank 0 may leave before rank 1 has read its chunk 0");
    set = built("oneshot", PLAN_ALL_GATHER, 3); /* needs none while it is eager */
    plans_expect_proven(&set);
    plans_step(&set, 0, 0)->eager = false;
    expect_refused_and_broken(&set, "rank 0 may leave before rank 1 has read its chunk 0");
}

/* Broadcast of two messages; the root waits for all but the last @p back. */
static plan_set broadcast_with_wait(int back)
{
    plan_set set = two_empty(PLAN_BROADCAST);
    for (int chunk = 0; chunk < 2; chunk++) {
        plan_send(set.of[0], PLAN_SRC, chunk, 1, 1, PLAN_DST);
        plan_copy(set.of[0], PLAN_SRC, chunk, PLAN_DST, chunk, 1);
        plan_recv(set.of[1], 0, PLAN_DST, chunk, 1);
    }
    plan_wait(set.of[0], 1, back);
    seal(&set);
    return set;
}

static void a_wait_for_too_little_is_seen(void **state)
{
    plan_set set = broadcast_with_wait(0);
    plans_expect_proven(&set);
    assert_null(adversary_attack(&set, 500));
    plans_free(&set);
    set = broadcast_with_wait(1);
    expect_refused_and_broken(&set, "rank 0 may leave before rank 1 has read its chunk 1");
}

/* Both wait for the other to take before they take themselves. By value it would pass. */
static void waits_for_each_other_are_seen(void **state)
{
    plan_set set = two_empty(PLAN_ALL_GATHER);
    for (int rank = 0; rank < 2; rank++) {
        plan *p = set.of[rank];
        plan_copy(p, PLAN_SRC, rank, PLAN_DST, rank, 1);
        plan_send(p, PLAN_SRC, rank, 1, 1 - rank, PLAN_DST);
        plan_wait(p, 1 - rank, 0);
        plan_recv(p, 1 - rank, PLAN_DST, 1 - rank, 1);
    }
    seal(&set);
    expect_refused_and_broken(&set, "rank 0, step 2 (wait for r1): waits for ever for rank 1");
}

/* Both give their chunk to the other and fold: in place, the fold may destroy what the other
 * has not read yet. With a wait before the folds it is right. */
static plan_set folds_of_each_other(bool wait)
{
    plan_set set = two_empty(PLAN_ALL_REDUCE);
    for (int rank = 0; rank < 2; rank++) {
        plan *p = set.of[rank];
        for (int chunk = 0; chunk < 2; chunk++)
            plan_send(p, PLAN_SRC, chunk, 1, 1 - rank, PLAN_WIRE);
        plan_fold(p, 0, 1);
        fold_operand(p, 0, PLAN_WIRE_DATA);
        fold_operand(p, 1, PLAN_WIRE_DATA);
        plan_fold_into(p, PLAN_SCRATCH);
        plan_fold(p, 1, 1);
        fold_operand(p, 0, PLAN_WIRE_DATA);
        fold_operand(p, 1, PLAN_WIRE_DATA);
        plan_fold_into(p, PLAN_SCRATCH);
        if (wait)
            plan_wait(p, 1 - rank, 0);
        plan_fold(p, 0, 2);
        plan_fold_local(p, PLAN_SCRATCH);
        plan_fold_into(p, PLAN_DST);
        if (!wait)
            plan_wait(p, 1 - rank, 0);
    }
    seal(&set);
    return set;
}

static void a_chunk_overwritten_while_it_is_read_is_seen(void **state)
{
    plan_set set = folds_of_each_other(false);
    expect_refused_and_broken(&set, "in place: rank 0, step 4 (fold scratch[0..1] -> dst[0..1] "
                                    "finished) overwrites a chunk too early");
    set = folds_of_each_other(true);
    plans_expect_proven(&set);
    assert_null(adversary_attack(&set, 1000));
    plans_free(&set);
}

/* A WAIT may pass before the peer takes what was carried: it tells nothing of where the peer is,
 * so rank 2 is not known to have read what rank 1 stores over. */
static void a_wait_tells_nothing_of_the_peers_steps(void **state)
{
    plan_set set = two_empty(PLAN_BARRIER);
    plan_send(set.of[0], PLAN_SRC, 0, 1, 1, PLAN_DST);
    plan_wait(set.of[0], 1, 0);
    plan_recv(set.of[1], 0, PLAN_DST, 0, 1);
    seal(&set);
    expect_refused(&set, "rank 0 may leave the barrier before rank 1 has entered it");
}

/* Rank 0 hears of rank 1 through rank 2 alone: it carries the result to it, and stores it into
 * rank 2 at most. */
static void a_result_for_a_peer_that_never_wrote_is_carried(void **state)
{
    plan_set set = {.ranks = 3};
    for (int rank = 0; rank < 3; rank++)
        set.of[rank] = plan_new(PLAN_ALL_REDUCE, "hand", rank, 3, 0, 2);
    plan_send(set.of[1], PLAN_SRC, 0, 2, 2, PLAN_WIRE);
    plan_fold(set.of[2], 0, 2);
    plan_fold_message(set.of[2], 1, PLAN_WIRE_DATA);
    plan_fold_local(set.of[2], PLAN_SRC);
    plan_fold_to(set.of[2], 0, PLAN_WIRE);
    plan_fold(set.of[0], 0, 2);
    plan_fold_local(set.of[0], PLAN_SRC);
    plan_fold_message(set.of[0], 2, PLAN_WIRE_ACC);
    plan_fold_into(set.of[0], PLAN_DST);
    for (int rank = 1; rank < 3; rank++) {
        plan_fold_to(set.of[0], rank, PLAN_DST);
        plan_recv(set.of[rank], 0, PLAN_DST, 0, 2);
    }
    seal(&set);
    plans_expect_proven(&set);
    assert_null(adversary_attack(&set, 1000));
    plans_free(&set);
}

/* Rank 0 stores the sum into rank 1 while rank 1 may still read its own chunk there. */
static void a_store_into_a_chunk_that_is_still_read_is_seen(void **state)
{
    plan_set set = two_empty(PLAN_ALL_REDUCE);
    for (int chunk = 0; chunk < 2; chunk++) {
        plan_send(set.of[1], PLAN_SRC, chunk, 1, 0, PLAN_WIRE);
        fold_two(set.of[0], chunk, PLAN_WIRE_DATA);
        plan_fold_to(set.of[0], 1, PLAN_DST);
    }
    for (int chunk = 0; chunk < 2; chunk++) { /* writes what is stored meanwhile */
        fold_alone(set.of[1], chunk);
        plan_recv(set.of[1], 0, PLAN_DST, chunk, 1);
    }
    seal(&set);
    expect_refused_and_broken(&set, "overwrites a chunk too early or too late: rank");
}

/* Block s * 2 + d is what rank s gives rank d. */
static void a_block_for_another_rank_is_refused(void **state)
{
    plan_set set = two_empty(PLAN_ALL_TO_ALL);
    for (int rank = 0; rank < 2; rank++) {
        plan *p = set.of[rank];
        plan_send_eager(p, PLAN_SRC, 3 * rank, 1, 1 - rank, PLAN_DST); /* its own block */
        plan_recv(p, 1 - rank, PLAN_DST, 3 * (1 - rank), 1);
    }
    seal(&set);
    plans_expect_refused(&set, "which the rank does not have");
    plans_free(&set);
    set = built("direct", PLAN_ALL_TO_ALL, 3);
    plans_expect_proven(&set);
    plans_drop(&set, 1, plans_find(&set, 1, PLAN_STEP_COPY));
    plans_expect_refused(&set, "ends with dst chunk 4 empty");
    plans_free(&set);
}

static void a_gather_needs_its_root_alone(void **state)
{
    plan_set set = built("direct", PLAN_GATHER, 3);
    plans_drop(&set, 1, plans_find(&set, 1, PLAN_STEP_WAIT));
    plans_expect_refused(&set, "");
    plans_free(&set);
    set = two_empty(PLAN_GATHER);
    plan_copy(set.of[0], PLAN_SRC, 0, PLAN_DST, 0, 1);
    plan_recv(set.of[0], 1, PLAN_DST, 1, 1);
    plan_copy(set.of[1], PLAN_SRC, 1, PLAN_DST, 1, 1); /* no dst there */
    plan_send_eager(set.of[1], PLAN_SRC, 1, 1, 0, PLAN_DST);
    seal(&set);
    plans_expect_refused(&set, "uses dst chunk 1, which the rank does not have");
    plans_free(&set);
}

static void a_scatter_of_another_ranks_data_is_refused(void **state)
{
    plan_set set = two_empty(PLAN_SCATTER);
    plan_copy(set.of[0], PLAN_SRC, 0, PLAN_DST, 0, 1);
    plan_copy(set.of[1], PLAN_SRC, 1, PLAN_DST, 1, 1); /* the root alone has a src */
    seal(&set);
    plans_expect_refused(&set, "uses src chunk 1, which the rank does not have");
    plans_free(&set);
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
        cmocka_unit_test(a_prefix_is_combined_in_the_order_of_ranks),
        cmocka_unit_test(a_prefix_has_nothing_of_later_ranks),
        cmocka_unit_test(a_finished_chunk_is_not_folded_again),
        cmocka_unit_test(a_chunk_of_somebody_else_is_not_the_result),
        cmocka_unit_test(a_chunk_is_not_read_before_it_is_there),
        cmocka_unit_test(a_barrier_waits_for_everybody),
        cmocka_unit_test(sums_may_rest_in_scratch),
        cmocka_unit_test(scratch_is_not_read_before_it_is_written),
        cmocka_unit_test(the_ends_of_a_message_agree_on_its_range),
        cmocka_unit_test(an_unfinished_chunk_does_not_come_to_dst),
        cmocka_unit_test(a_range_is_not_copied_onto_a_part_of_itself),
        cmocka_unit_test(a_fold_may_relay_to_several),
        cmocka_unit_test(scratch_is_not_written_again_in_the_next_slice_while_it_is_lent),
        cmocka_unit_test(a_store_that_is_too_early_in_later_slices_is_seen),
        cmocka_unit_test(a_wait_that_spares_a_part_of_a_range_is_seen),
        cmocka_unit_test(a_missing_wait_is_seen),
        cmocka_unit_test(a_wait_for_too_little_is_seen),
        cmocka_unit_test(waits_for_each_other_are_seen),
        cmocka_unit_test(a_chunk_overwritten_while_it_is_read_is_seen),
        cmocka_unit_test(a_wait_tells_nothing_of_the_peers_steps),
        cmocka_unit_test(a_result_for_a_peer_that_never_wrote_is_carried),
        cmocka_unit_test(a_store_into_a_chunk_that_is_still_read_is_seen),
        cmocka_unit_test(a_block_for_another_rank_is_refused),
        cmocka_unit_test(a_gather_needs_its_root_alone),
        cmocka_unit_test(a_scatter_of_another_ranks_data_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
