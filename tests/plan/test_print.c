/* SPDX-License-Identifier: Apache-2.0
 * What people read: the table G(i,j), steps as text, the trace. */
#include "plans.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static plan_set built(const char *algorithm, plan_collective collective, int ranks, int chunks)
{
    const plan_case c = {algo_find(algorithm), collective, ranks, 0, chunks};
    return plans_build(&c);
}

/* What a printer writes, as text to be freed. */
static char *printed(const plan_set *set, ring_status (*print)(const plan_set *, FILE *))
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    const ring_status status = print(set, out);
    fclose(out);
    if (status != RING_OK)
        fail_msg("%s", fail_text());
    return text;
}

static ring_status print_table(const plan_set *set, FILE *out)
{
    return plan_print_table((const plan *const *)set->of, set->ranks, out);
}

static ring_status print_steps(const plan_set *set, FILE *out)
{
    plan_print_steps(set->of[1], out);
    return RING_OK;
}

static const plan_cost_params params = {
    .alpha = 10e-6, .alpha_ref = 1e-6, .beta = 1e-9, .gamma = 1e-10, .overhead = 1e-6};

static ring_status print_trace(const plan_set *set, FILE *out)
{
    return plan_print_trace((const plan *const *)set->of, set->ranks, 1000, 4, &params, out);
}

static int occurrences(const char *text, const char *what)
{
    int count = 0;
    while ((text = strstr(text, what)) != NULL) {
        text += strlen(what);
        count++;
    }
    return count;
}

static char *read_expected(const char *name)
{
    char path[4096], *text = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%s/%s", TEST_FOLDER, name);
    FILE *in = fopen(path, "re");
    assert_non_null(in);
    assert_true(getdelim(&text, &size, '\0', in) > 0);
    fclose(in);
    return text;
}

static void five_ranks_on_the_ring_look_like_the_slides(void **state)
{
    plan_set set = built("ring", PLAN_ALL_REDUCE, 5, 5);
    char *text = printed(&set, print_table), *expected = read_expected("ring_all_reduce_5.txt");
    (void)state;
    assert_string_equal(text, expected);
    assert_int_equal(occurrences(text, "after transfer"), 8);
    free(expected);
    free(text);
    plans_free(&set);
}

static void direct_takes_two_transfers(void **state)
{
    plan_set set = built("direct", PLAN_ALL_REDUCE, 7, 7);
    char *text = printed(&set, print_table);
    (void)state;
    assert_int_equal(occurrences(text, "after transfer"), 2);
    free(text);
    plans_free(&set);
}

/* The last chunk leaves at beat K - 1, and goes up and down. */
static void a_chain_fills_and_drains(void **state)
{
    plan_set set = built("chain", PLAN_ALL_REDUCE, 4, 5);
    char *text = printed(&set, print_table);
    (void)state;
    assert_int_equal(occurrences(text, "after transfer"), 2 * 3 + 5 - 1);
    free(text);
    plans_free(&set);
}

static void many_ranks_are_named_shortly_and_clearly(void **state)
{
    plan_set set = built("ring", PLAN_ALL_REDUCE, 12, 12);
    char *text = printed(&set, print_table);
    (void)state;
    assert_non_null(strstr(text, "G(11..2,10)"));
    assert_non_null(strstr(text, "G(*,11)"));
    assert_non_null(strstr(text, "G(3,4)"));
    free(text);
    plans_free(&set);
}

static void chunks_that_a_rank_does_not_have_are_dots(void **state)
{
    plan_set set = built("ring", PLAN_ALL_GATHER, 3, 3);
    char *text = printed(&set, print_table);
    (void)state;
    assert_non_null(strstr(text, "rank 1    .    G11  .\n"));
    free(text);
    plans_free(&set);
}

static void a_plan_that_waits_for_ever_is_an_error_not_a_table(void **state)
{
    plan_set set = built("ring", PLAN_ALL_REDUCE, 3, 3);
    FILE *out = tmpfile();
    (void)state;
    plans_drop(&set, 0, 0);
    plans_drop(&set, 1, 0);
    plans_drop(&set, 2, 0);
    assert_int_equal(print_table(&set, out), RING_ERR_INTERNAL);
    assert_int_equal(print_trace(&set, out), RING_ERR_INTERNAL);
    fclose(out);
    plans_free(&set);
}

static void steps_are_numbered_and_unrolled(void **state)
{
    plan_set set = built("ring", PLAN_ALL_REDUCE, 3, 3);
    char *text = printed(&set, print_steps);
    (void)state;
    assert_string_equal(text, "rank 1 of 3: all_reduce by ring, 3 chunks, 9 steps\n"
                              "    0  send src[0] -> r2:wire[0]\n"
                              "    1  fold r0:wire[2] + src[2] -> r2:wire[2]\n"
                              "    2  fold r0:wire[1] + src[1] -> dst[1], finished\n"
                              "    3  send dst[1] -> r2:dst[1]\n"
                              "    4  recv r0:dst[0] -> dst[0]\n"
                              "    5  send dst[0] -> r2:dst[0]\n"
                              "    6  recv r0:dst[2] -> dst[2]\n"
                              "    7  ack to r0\n"
                              "    8  wait_ack of r2\n");
    free(text);
    plans_free(&set);
}

static double end_of_trace(const char *text)
{
    double end = 0;
    while ((text = strstr(text, "\"ts\":")) != NULL) {
        double ts, dur;
        assert_int_equal(sscanf(text, "\"ts\":%lf,\"dur\":%lf", &ts, &dur), 2);
        end = ts + dur > end ? ts + dur : end;
        text++;
    }
    return end * 1e-6;
}

/* All ranks' time lines together end where one rank's mirrored one does. */
static void check_trace(const char *algorithm, int ranks, double tolerance)
{
    plan_set set = built(algorithm, PLAN_ALL_REDUCE, ranks, ranks);
    char *text = printed(&set, print_trace);
    int64_t steps = 0;
    for (int rank = 0; rank < ranks; rank++)
        steps += plan_length(set.of[rank]);
    assert_int_equal(occurrences(text, "\"ph\":\"X\""), steps);
    assert_int_equal(occurrences(text, "{"), occurrences(text, "}"));
    assert_int_equal(occurrences(text, "\"thread_name\""), ranks);
    const double end = end_of_trace(text);
    const double price = plan_cost(set.of[ranks / 2], 1000, 4, 4, &params);
    if (end < price / tolerance || end > price * tolerance)
        fail_msg("%s, %d ranks: the trace ends at %g, the price is %g", algorithm, ranks, end,
                 price);
    free(text);
    plans_free(&set);
}

static void a_trace_ends_when_the_price_says(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 10; ranks++) {
        check_trace("ring", ranks, 1.02);
        check_trace("direct", ranks, 1.02);
        check_trace("chain", ranks, 1.5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_ranks_on_the_ring_look_like_the_slides),
        cmocka_unit_test(direct_takes_two_transfers),
        cmocka_unit_test(a_chain_fills_and_drains),
        cmocka_unit_test(many_ranks_are_named_shortly_and_clearly),
        cmocka_unit_test(chunks_that_a_rank_does_not_have_are_dots),
        cmocka_unit_test(a_plan_that_waits_for_ever_is_an_error_not_a_table),
        cmocka_unit_test(steps_are_numbered_and_unrolled),
        cmocka_unit_test(a_trace_ends_when_the_price_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
