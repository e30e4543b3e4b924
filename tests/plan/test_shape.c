/* SPDX-License-Identifier: Apache-2.0
 * A list that is no plan at all is refused without harm: wrong numbers, wrong kinds, rubbish. */
#include "adversary.h"

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

typedef void (*damage)(plan *p);

static void name_rank_77(plan *p)
{
    p->locs[0].rank = 77;
}

static void name_chunk_99(plan *p)
{
    p->locs[1].chunk = 99;
}

static void name_buffer_9(plan *p)
{
    p->locs[0].buffer = 9;
}

static void name_type_2(plan *p)
{
    p->locs[1].wire = 2;
}

static void have_a_range_of_nothing(plan *p)
{
    p->locs[0].chunks = 0;
}

static void have_a_range_that_wraps(plan *p)
{
    p->locs[0].chunk = p->locs[1].chunk = p->chunks - 1;
    p->locs[0].chunks = p->locs[1].chunks = 2;
}

static void point_behind_operands(plan *p)
{
    p->steps[0].first_in = p->loc_count;
}

static void have_endless_operands(plan *p)
{
    p->steps[1].ins = INT32_MAX;
}

static void repeat_behind_steps(plan *p)
{
    p->blocks[0].steps = 100;
}

static void move_ranges(plan *p)
{
    p->blocks[0].times = 2;
    p->blocks[0].stride = 2;
}

static void be_another_rank(plan *p)
{
    p->rank = 0;
}

static void have_another_root(plan *p)
{
    p->root = 1;
}

static void claim_a_circle(plan *p)
{
    p->circular = true;
}

static void be_another_collective(plan *p)
{
    p->collective = PLAN_REDUCE_SCATTER;
}

static void send_from_the_wire(plan *p)
{
    p->locs[0].buffer = PLAN_WIRE;
}

static void send_into_src(plan *p)
{
    p->locs[1].buffer = PLAN_SRC;
}

static void send_into_scratch(plan *p)
{
    p->locs[1].buffer = PLAN_SCRATCH;
}

static void send_a_sum_from_src(plan *p)
{
    p->locs[1].wire = PLAN_WIRE_ACC;
}

static void send_scratch_that_is_not_there(plan *p)
{
    p->locs[0].buffer = PLAN_SCRATCH;
}

static void send_to_itself(plan *p)
{
    p->locs[1].rank = 1;
}

static void send_another_chunk(plan *p)
{
    p->locs[1].chunk ^= 2;
}

static void send_less_than_it_says(plan *p)
{
    p->locs[1].chunks--;
}

static void be_of_unknown_kind(plan *p)
{
    p->steps[0].kind = 42;
}

static void fold_eagerly(plan *p)
{
    p->steps[1].eager = true;
}

static void finish_into_nothing(plan *p)
{
    p->steps[1].outs = 0;
}

static void leave_unfinished(plan *p)
{
    p->locs[p->steps[1].first_out].finish = false;
}

static void finish_into_scratch(plan *p)
{
    p->locs[p->steps[1].first_out].buffer = PLAN_SCRATCH;
    p->scratch_chunks = p->chunks;
}

static void round_for_a_peer(plan *p)
{
    p->locs[p->steps[1].first_out + 1].wire = PLAN_WIRE_ACC;
}

static void fold_the_result(plan *p)
{
    p->locs[p->steps[1].first_in + 1].buffer = PLAN_DST;
}

static void receive_for_src(plan *p)
{
    p->locs[p->steps[2].first_out].buffer = PLAN_SRC;
}

static void receive_what_folds_take(plan *p)
{
    p->locs[p->steps[2].first_in].buffer = PLAN_WIRE;
}

static void receive_elsewhere(plan *p)
{
    p->locs[p->steps[2].first_in].buffer = PLAN_SCRATCH;
    p->locs[p->steps[2].first_in].wire = PLAN_WIRE_ACC;
    p->locs[p->steps[2].first_out].buffer = PLAN_DST;
}

static void receive_twice_from_one(plan *p)
{
    p->locs[p->steps[1].first_in + 1] = p->locs[p->steps[1].first_in];
}

static void receive_sums(plan *p)
{
    p->locs[p->steps[2].first_in].wire = PLAN_WIRE_ACC;
}

static void forget_its_peers(plan *p)
{
    p->peer_count = 0;
}

static void miscount_its_messages(plan *p)
{
    p->peers[0].sends++;
}

static void wait_for_itself(plan *p)
{
    p->steps[0] = (plan_step){.kind = PLAN_STEP_WAIT, .peer = 1};
}

static void wait_for_a_stranger(plan *p)
{
    p->steps[2] = (plan_step){.kind = PLAN_STEP_WAIT, .peer = 5};
}

static void wait_with_operands(plan *p)
{
    p->steps[0].kind = PLAN_STEP_WAIT;
}

static void wait_for_the_future(plan *p)
{
    p->steps[2] = (plan_step){.kind = PLAN_STEP_WAIT, .back = -1};
}

/* Rank 1's plan: send src[0..1] to rank 0; fold its own block into both; receive rank 0's. */
static void plans_that_are_no_plans_are_refused(void **state)
{
    static const struct {
        damage damage;
        const char *telling;
    } table[] = {
        {name_rank_77, "has an index that is out of range"},
        {name_chunk_99, "has an index that is out of range"},
        {name_buffer_9, "has an index that is out of range"},
        {name_type_2, "has an index that is out of range"},
        {have_a_range_of_nothing, "has an index that is out of range"},
        {have_a_range_that_wraps, "has an index that is out of range"},
        {point_behind_operands, "has an index that is out of range"},
        {have_endless_operands, "has an index that is out of range"},
        {repeat_behind_steps, "has an index that is out of range"},
        {move_ranges, "has more than one chunk, in a moving block"},
        {be_another_rank, "is not of the same call as plan 0"},
        {have_another_root, "is not of the same call as plan 0"},
        {claim_a_circle, "is not of the same call as plan 0"},
        {be_another_collective, "is not of the same call as plan 0"},
        {send_from_the_wire, "uses a buffer that this kind of step cannot use"},
        {send_into_src, "uses a buffer that this kind of step cannot use"},
        {send_into_scratch, "has a message whose type is not that of its buffer"},
        {send_a_sum_from_src, "has a message whose type is not that of its buffer"},
        {send_scratch_that_is_not_there, "uses scratch that the plan does not have"},
        {send_to_itself, "uses a buffer that this kind of step cannot use"},
        {send_another_chunk, "has operands of different chunks"},
        {send_less_than_it_says, "has operands of different chunks"},
        {be_of_unknown_kind, "malformed"},
        {fold_eagerly, "malformed"},
        {finish_into_nothing, "malformed"},
        {leave_unfinished, "puts an unfinished chunk into dst"},
        {finish_into_scratch, "puts a finished chunk into a buffer other than dst"},
        {round_for_a_peer, "sends a finished chunk in the accumulator's type"},
        {fold_the_result, "uses a buffer that this kind of step cannot use"},
        {receive_for_src, "uses a buffer that this kind of step cannot use"},
        {receive_what_folds_take, "uses a buffer that this kind of step cannot use"},
        {receive_elsewhere, "has a message whose type is not that of its buffer"},
        {receive_twice_from_one, "has two messages from or to the same rank"},
        {receive_sums, "has a message whose type is not that of its buffer"},
        {forget_its_peers, "the list of rank 1's peers does not match its steps"},
        {miscount_its_messages, "the list of rank 1's peers does not match its steps"},
        {wait_for_itself, "waits for a rank it never sends to"},
        {wait_for_a_stranger, "waits for a rank it never sends to"},
        {wait_with_operands, "malformed"},
        {wait_for_the_future, "malformed"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const plan_case c = {algo_find("direct"), PLAN_ALL_REDUCE, 2, 0, 4, 0};
        plan_set set = plans_build(&c);
        plans_expect_proven(&set);
        table[i].damage(set.of[1]);
        expect_refused(&set, table[i].telling);
    }
}

/* Slices cut every block, so a range of two blocks has no slice. */
static void ranges_that_slices_cannot_cut_are_refused(void **state)
{
    plan_set set = {.ranks = 2};
    for (int rank = 0; rank < 2; rank++) {
        set.of[rank] = plan_new(PLAN_REDUCE_SCATTER, "hand", rank, 2, 0, 4);
        assert_non_null(set.of[rank]);
    }
    plan_fold(set.of[0], 1, 2);
    plan_fold_local(set.of[0], PLAN_SRC);
    plan_fold_into(set.of[0], PLAN_SCRATCH);
    seal(&set);
    expect_refused(&set, "has a range that spans two blocks");
    set = plans_build(&(plan_case){algo_find("direct"), PLAN_ALL_REDUCE, 2, 0, 4, 0});
    set.of[0]->circular = set.of[1]->circular = true;
    expect_refused(&set, "has more than one chunk, in a moving block");
}

static void folds_in_collectives_without_sums_are_refused(void **state)
{
    plan_set set = two_empty(PLAN_BROADCAST);
    plan_fold(set.of[0], 0, 1);
    plan_fold_local(set.of[0], PLAN_SRC);
    plan_fold_into(set.of[0], PLAN_DST);
    seal(&set);
    expect_refused(&set, "this collective combines nothing");
}

static void rounding_on_the_way_is_refused(void **state)
{
    plan_set set = built("ring", PLAN_ALL_REDUCE, 3);
    const plan_step *fold = plans_step(&set, 2, plans_find(&set, 2, PLAN_STEP_FOLD));
    set.of[2]->locs[fold->first_out].wire = PLAN_WIRE_DATA;
    expect_refused(&set, "an unfinished one in the data type");
}

static void numbers_of_ranks_beyond_the_limit_are_refused(void **state)
{
    plan_set set = built("ring", PLAN_ALL_REDUCE, 2);
    assert_int_equal(plan_check((const plan *const *)set.of, 0), RING_ERR_INTERNAL);
    assert_int_equal(plan_check((const plan *const *)set.of, 65), RING_ERR_INTERNAL);
    assert_int_equal(plan_check((const plan *const *)set.of, 3), RING_ERR_INTERNAL);
    plans_free(&set);
}

/* ---- Rubbish ----------------------------------------------------------------------- */

static int32_t odd_number(uint64_t *random, int32_t sensible)
{
    const uint32_t choice = plans_random(random, 16);
    if (choice > 1)
        return (int32_t)plans_random(random, (uint32_t)sensible);
    return choice == 1 ? -1 : sensible + (int32_t)plans_random(random, 3);
}

static plan_loc odd_loc(uint64_t *random)
{
    return (plan_loc){.rank = (int)plans_random(random, 2),
                      .chunk = odd_number(random, 2),
                      .chunks = odd_number(random, 2) + 1,
                      .buffer = (uint8_t)odd_number(random, 4),
                      .wire = (uint8_t)odd_number(random, 2),
                      .finish = plans_random(random, 2) == 1};
}

static plan *rubbish(uint64_t *random, int rank)
{
    plan *p = plan_new((plan_collective)plans_random(random, 6), "rubbish", rank, 2, 0, 2);
    assert_non_null(p);
    const uint32_t steps = plans_random(random, 6);
    for (uint32_t i = 0; i < steps; i++) {
        plan_add_step(p, &(plan_step){.kind = (uint8_t)odd_number(random, 5),
                                      .eager = plans_random(random, 4) == 1,
                                      .peer = odd_number(random, 2),
                                      .back = odd_number(random, 2)});
        for (uint32_t k = plans_random(random, 3); k > 0; k--) {
            const plan_loc loc = odd_loc(random);
            plan_add_input(p, &loc);
        }
        for (uint32_t k = plans_random(random, 3); k > 0; k--) {
            const plan_loc loc = odd_loc(random);
            plan_add_output(p, &loc);
        }
    }
    assert_int_equal(plan_seal(p), RING_OK);
    return p;
}

static void rubbish_is_refused_without_harm(void **state)
{
    uint64_t random = 2024;
    for (int i = 0; i < 50000; i++) {
        plan_set set = {.ranks = 2};
        set.of[0] = rubbish(&random, 0);
        set.of[1] = rubbish(&random, 1);
        set.of[1]->collective = set.of[0]->collective;
        const char *wrong = plans_proven(&set) ? adversary_attack(&set, 10) : NULL;
        if (wrong != NULL)
            fail_msg("rubbish %d was accepted, but %s", i, wrong);
        plans_free(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_that_are_no_plans_are_refused),
        cmocka_unit_test(folds_in_collectives_without_sums_are_refused),
        cmocka_unit_test(ranges_that_slices_cannot_cut_are_refused),
        cmocka_unit_test(rounding_on_the_way_is_refused),
        cmocka_unit_test(numbers_of_ranks_beyond_the_limit_are_refused),
        cmocka_unit_test(rubbish_is_refused_without_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
