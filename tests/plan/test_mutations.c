/* SPDX-License-Identifier: Apache-2.0
 * Every algorithm's plans with something taken out, moved or turned into something else: without
 * any one step or message they are refused; and whatever is accepted, changed or not, withstands
 * the adversary. All plans with RING_TEST_LONG, else a sample of them (draw.h). */
#include "adversary.h"
#include "draw.h"

#include <stdio.h>

#include "unit_test.h"

/* ---- The sample: one in PARTS of the plans, or as many of these parts as are needed ---------- */

enum { PARTS = 16 };

static void (*try_case)(const plan_case *c);
static uint32_t part, serial; /* which of the parts; of the plan */
static int accepted, refused;

static void try_if_in_part(const plan_case *c)
{
    if (serial++ % PARTS == part)
        try_case(c);
}

static void each_small_case(int least, int most, void (*each)(const plan_case *c))
{
    size_t count;
    const algo *all = algo_all(&count);
    for (size_t i = 0; i < count; i++)
        for (int ranks = least; ranks <= most; ranks++)
            plans_each_case(all[i].name, ranks, each);
}

/* Goes on until so many were accepted and refused. */
static void sample(int least, int most, void (*each)(const plan_case *c), int wanted)
{
    uint64_t drawn = test_seed();
    const uint32_t first = test_draw(&drawn, PARTS);
    accepted = refused = 0;
    try_case = each;
    for (uint32_t i = 0; i < PARTS; i++) {
        if (i > 0 && !test_is_long() && accepted >= wanted && refused >= wanted)
            return;
        part = (first + i) % PARTS;
        serial = 0;
        each_small_case(least, most, try_if_in_part);
    }
}

static void describe(const plan_case *c, const char *what, int a, int b, int number)
{
    fail_msg("%s by %s, %d ranks, root %d, %d chunks: accepted without %s %d of %d -> %d",
             plan_collective_name(c->collective), c->algorithm->name, c->ranks, c->root, c->chunks,
             what, number, a, b);
}

/* ---- Taking out ------------------------------------------------------------------ */

/* The plans as the changes below see them: unrolled, and right before they are changed. */
static plan_set unrolled(const plan_case *c)
{
    plan_set built = plans_build(c), copy = plans_copy(&built);
    plans_free(&built);
    plans_expect_proven(&copy);
    return copy;
}

static void drop_each_step(const plan_case *c)
{
    plan_set whole = unrolled(c);
    for (int rank = 0; rank < c->ranks; rank++) {
        for (int i = 0; i < (int)plan_length(whole.of[rank]); i++) {
            plan_set set = plans_copy(&whole);
            plans_drop(&set, rank, i);
            if (plans_proven(&set))
                describe(c, "step", rank, rank, i);
            plans_free(&set);
        }
    }
    plans_free(&whole);
}

static void drop_messages_between(const plan_case *c, const plan_set *whole, int from, int to)
{
    for (int i = 0; i < plans_messages(whole, from, to); i++) {
        plan_set set = plans_copy(whole);
        plans_drop_message(&set, from, to, i);
        if (plans_proven(&set))
            describe(c, "message", from, to, i);
        plans_free(&set);
    }
}

/* A barrier cut into more chunks than it needs says the same several times. */
static bool repeats_itself(const plan_case *c)
{
    const plan_world world = plans_world(c->ranks, c->per_host);
    return c->collective == PLAN_BARRIER &&
           c->chunks > c->algorithm->chunks(PLAN_BARRIER, &world, 0);
}

static void drop_each_message(const plan_case *c)
{
    if (repeats_itself(c))
        return;
    plan_set whole = unrolled(c);
    for (int from = 0; from < c->ranks; from++)
        for (int to = 0; to < c->ranks; to++)
            drop_messages_between(c, &whole, from, to);
    plans_free(&whole);
}

static void without_any_one_step_plans_are_refused(void **state)
{
    sample(2, 4, drop_each_step, 0);
}

static void without_any_one_message_plans_are_refused(void **state)
{
    sample(2, 5, drop_each_message, 0);
}

/* ---- Moving ---------------------------------------------------------------------- */

static void expect_trustworthy(const plan_set *set, int attacks)
{
    if (!plans_proven(set)) {
        refused++;
        return;
    }
    const char *wrong = adversary_attack(set, attacks);
    accepted++;
    if (wrong != NULL)
        fail_msg("the checker accepts what the adversary breaks: %s", wrong);
}

static void attack_unchanged(const plan_case *c)
{
    plan_set set = plans_build(c);
    const char *wrong = adversary_attack(&set, 24);
    if (wrong != NULL)
        fail_msg("%s by %s, %d ranks, root %d, %d chunks: %s", plan_collective_name(c->collective),
                 c->algorithm->name, c->ranks, c->root, c->chunks, wrong);
    plans_free(&set);
}

static void swap_each_pair_of_steps(const plan_case *c)
{
    plan_set whole = unrolled(c);
    for (int rank = 0; rank < c->ranks; rank++) {
        for (int i = 1; i < (int)plan_length(whole.of[rank]); i++) {
            plan_set set = plans_copy(&whole);
            plans_swap(&set, rank, i);
            expect_trustworthy(&set, 12);
            plans_free(&set);
        }
    }
    plans_free(&whole);
}

/* Several random moves in all plans, one of the sort that races come from. */
static void shuffle(const plan_case *c)
{
    uint64_t random = (uint64_t)c->ranks * 1000 + (uint64_t)c->chunks;
    plan_set whole = unrolled(c);
    for (int round = 0; round < 30; round++) {
        plan_set set = plans_copy(&whole);
        for (uint32_t moves = 1 + plans_random(&random, 4); moves > 0; moves--) {
            const int rank = (int)plans_random(&random, (uint32_t)c->ranks);
            const uint32_t length = (uint32_t)plan_length(set.of[rank]);
            if (length > 1)
                plans_swap(&set, rank, 1 + (int)plans_random(&random, length - 1));
        }
        expect_trustworthy(&set, 10);
        plans_free(&set);
    }
    plans_free(&whole);
}

static void borrow_or_not(plan_step *step, int ranks)
{
    step->eager = !step->eager;
}

static void wait_for_less(plan_step *step, int ranks)
{
    step->back++;
}

static void wait_for_another(plan_step *step, int ranks)
{
    step->peer = (step->peer + 1) % ranks;
}

typedef void (*change)(plan_step *step, int ranks);

static void change_step(const plan_set *whole, int rank, int index, change how)
{
    plan_set set = plans_copy(whole);
    how(plans_step(&set, rank, index), set.ranks);
    expect_trustworthy(&set, 12);
    plans_free(&set);
}

static void change_each_step(const plan_case *c)
{
    plan_set whole = unrolled(c);
    for (int rank = 0; rank < c->ranks; rank++) {
        for (int i = 0; i < (int)plan_length(whole.of[rank]); i++) {
            const plan_kind kind = plans_step(&whole, rank, i)->kind;
            if (kind == PLAN_STEP_SEND)
                change_step(&whole, rank, i, borrow_or_not);
            if (kind == PLAN_STEP_WAIT)
                change_step(&whole, rank, i, wait_for_less);
            if (kind == PLAN_STEP_WAIT)
                change_step(&whole, rank, i, wait_for_another);
        }
    }
    plans_free(&whole);
}

static void proven_plans_withstand_the_adversary(void **state)
{
    sample(2, 9, attack_unchanged, 0); /* cubes and trees with more than two levels, too */
}

static void plans_with_two_steps_swapped_are_refused_or_withstand(void **state)
{
    sample(2, 3, swap_each_pair_of_steps, 101);
    assert_true(accepted > 100 && refused > 100); /* the test has seen both */
}

static void shuffled_plans_are_refused_or_withstand(void **state)
{
    sample(2, 4, shuffle, 101);
    assert_true(accepted > 100 && refused > 100);
}

static void plans_with_a_step_of_another_meaning_are_refused_or_withstand(void **state)
{
    sample(2, 3, change_each_step, 101);
    assert_true(accepted > 100 && refused > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_any_one_step_plans_are_refused),
        cmocka_unit_test(without_any_one_message_plans_are_refused),
        cmocka_unit_test(proven_plans_withstand_the_adversary),
        cmocka_unit_test(plans_with_two_steps_swapped_are_refused_or_withstand),
        cmocka_unit_test(shuffled_plans_are_refused_or_withstand),
        cmocka_unit_test(plans_with_a_step_of_another_meaning_are_refused_or_withstand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
