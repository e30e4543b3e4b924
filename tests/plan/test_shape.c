/* SPDX-License-Identifier: Apache-2.0
 * What is no plan at all is refused without harm: wrong numbers, wrong kinds, rubbish. */
#include "adversary.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

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
    p->locs[0].buffer = (plan_buffer)9;
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

static void send_to_itself(plan *p)
{
    p->locs[1].rank = 1;
}

static void send_another_chunk(plan *p)
{
    p->locs[1].chunk ^= 1;
}

static void be_of_unknown_kind(plan *p)
{
    p->steps[0].kind = (plan_kind)42;
}

static void finish_into_nothing(plan *p)
{
    p->steps[1].outs = 0;
}

static void leave_unfinished(plan *p)
{
    p->steps[1].finish = false;
}

static void plans_that_are_no_plans_are_refused(void **state)
{
    static const struct {
        damage damage;
        const char *telling;
    } table[] = {
        {name_rank_77, "names what does not exist"},
        {name_chunk_99, "names what does not exist"},
        {name_buffer_9, "names what does not exist"},
        {point_behind_operands, "names what does not exist"},
        {have_endless_operands, "names what does not exist"},
        {repeat_behind_steps, "names what does not exist"},
        {be_another_rank, "plan 1 is of another call"},
        {have_another_root, "plan 1 is of another call"},
        {claim_a_circle, "plan 1 is of another call"},
        {be_another_collective, "plan 1 is of another call"},
        {send_from_the_wire, "reads its own wire"},
        {send_into_src, "sends into a src buffer"},
        {send_to_itself, "malformed"},
        {send_another_chunk, "mixes chunks"},
        {be_of_unknown_kind, "malformed"},
        {finish_into_nothing, "malformed"},
        {leave_unfinished, "puts a chunk into a buffer that is not finished"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        plan_set set = built("direct", PLAN_ALL_REDUCE, 2);
        plans_expect_proven(&set);
        table[i].damage(set.of[1]);
        expect_refused(&set, table[i].telling);
    }
}

static void folds_in_collectives_without_sums_are_refused(void **state)
{
    plan_set set = two_empty(PLAN_BROADCAST);
    (void)state;
    plan_fold(set.of[0], true, PLAN_WIRE_DATA, PLAN_WIRE_DATA);
    plan_in(set.of[0], 0, PLAN_SRC, 0);
    plan_out(set.of[0], 0, PLAN_DST, 0);
    seal(&set);
    expect_refused(&set, "this collective combines nothing");
}

static void rounding_on_the_way_is_refused(void **state)
{
    plan_set set = built("ring", PLAN_ALL_REDUCE, 3);
    (void)state;
    plans_step(&set, 2, plans_find(&set, 2, PLAN_STEP_FOLD))->wire_out = PLAN_WIRE_DATA;
    expect_refused(&set, "rounds a chunk that is not finished");
}

static void numbers_of_ranks_beyond_the_limit_are_refused(void **state)
{
    plan_set set = built("ring", PLAN_ALL_REDUCE, 2);
    (void)state;
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

static plan *rubbish(uint64_t *random, int rank)
{
    plan *p = plan_new((plan_collective)plans_random(random, 6), "rubbish", rank, 2, 0, 2);
    assert_non_null(p);
    const uint32_t steps = plans_random(random, 6);
    for (uint32_t i = 0; i < steps; i++) {
        plan_fold(p, plans_random(random, 2), (plan_wire)plans_random(random, 2),
                  (plan_wire)plans_random(random, 2));
        p->steps[p->step_count - 1].kind = (plan_kind)odd_number(random, 6);
        for (uint32_t k = plans_random(random, 3); k > 0; k--)
            plan_in(p, (int)plans_random(random, 2), (plan_buffer)odd_number(random, 3),
                    odd_number(random, 2));
        for (uint32_t k = plans_random(random, 3); k > 0; k--)
            plan_out(p, (int)plans_random(random, 2), (plan_buffer)odd_number(random, 3),
                     odd_number(random, 2));
    }
    assert_int_equal(plan_seal(p), RING_OK);
    return p;
}

static void rubbish_is_refused_without_harm(void **state)
{
    uint64_t random = 2024;
    (void)state;
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
        cmocka_unit_test(rounding_on_the_way_is_refused),
        cmocka_unit_test(numbers_of_ranks_beyond_the_limit_are_refused),
        cmocka_unit_test(rubbish_is_refused_without_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
