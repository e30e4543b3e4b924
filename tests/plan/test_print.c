/* SPDX-License-Identifier: Apache-2.0
 * Output for people: the table G(i,j), steps as text, the trace. */
#include "plans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

static plan_set built(const char *algorithm, plan_collective collective, int ranks, int chunks)
{
    const plan_case c = {algo_find(algorithm), collective, ranks, 0, chunks, 0};
    return plans_build(&c);
}

/* A printer's output, to be freed. */
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

static const plan_prices prices = {
    .same_host = {
        .alpha = 10e-6, .alpha_ref = 1e-6, .beta = 1e-9, .gamma = 1e-10, .overhead = 1e-6}};
static const plan_prices mapping = {.same_host = {.alpha = 0.4e-6,
                                                  .alpha_ref = 0.25e-6,
                                                  .beta = 1 / 8e9,
                                                  .gamma = 1 / 60e9,
                                                  .overhead = 0.2e-6,
                                                  .maps = true,
                                                  .reference_min = 64}};

static ring_status print_trace(const plan_set *set, FILE *out)
{
    const plan_world world = plans_world(set->ranks, 0);
    return plan_print_trace((const plan *const *)set->of, &world, 1000, 4, &prices, out);
}

static ring_status print_mapped_trace(const plan_set *set, FILE *out)
{
    const plan_world world = plans_world(set->ranks, 0);
    return plan_print_trace((const plan *const *)set->of, &world, 1000, 4, &mapping, out);
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
    assert_int_equal(occurrences(text, "after transfer"), 2);
    free(text);
    plans_free(&set);
}

/* The last chunk leaves at beat K - 1, and goes up and down. */
static void a_chain_fills_and_drains(void **state)
{
    plan_set set = built("chain", PLAN_ALL_REDUCE, 4, 5);
    char *text = printed(&set, print_table);
    assert_int_equal(occurrences(text, "after transfer"), 2 * 3 + 5 - 1);
    free(text);
    plans_free(&set);
}

static void many_ranks_are_named_shortly_and_clearly(void **state)
{
    plan_set set = built("ring", PLAN_ALL_REDUCE, 12, 12);
    char *text = printed(&set, print_table);
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
    assert_non_null(strstr(text, "rank 1    .    G11  .\n"));
    free(text);
    plans_free(&set);
}

static void a_plan_that_waits_for_ever_is_an_error_not_a_table(void **state)
{
    plan_set set = built("ring", PLAN_ALL_REDUCE, 3, 3);
    FILE *out = tmpfile();
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
    assert_string_equal(text, "rank 1 of 3: all_reduce by ring, 3 chunks, 8 steps\n"
                              "    0  send src[0] -> r2:wire[0]\n"
                              "    1  fold r0:wire[2] + src[2] -> r2:wire[2]\n"
                              "    2  fold r0:wire[1] + src[1] -> dst[1] finished\n"
                              "    3  send dst[1] -> r2:dst[1]\n"
                              "    4  recv r0:dst[0] -> dst[0]\n"
                              "    5  send dst[0] -> r2:dst[0]\n"
                              "    6  recv r0:dst[2] -> dst[2]\n"
                              "    7  wait for r2\n");
    free(text);
    plans_free(&set);
}

static void ranges_scratch_and_eager_sends_are_named(void **state)
{
    plan_set set = built("halving", PLAN_ALL_REDUCE, 4, 4);
    char *text = printed(&set, print_steps);
    assert_non_null(strstr(text, "send src[0..1] -> r0:wire[0..1]\n"));
    assert_non_null(strstr(text, "fold r0:wire[2..3] + src[2..3] -> scratch[2..3]\n"));
    assert_non_null(strstr(text, "send scratch[3] -> r3:wire[3]\n"));
    free(text);
    plans_free(&set);
    set = built("oneshot", PLAN_ALL_REDUCE, 2, 2);
    text = printed(&set, print_steps);
    assert_non_null(strstr(text, "send eager src[0..1] -> r0:wire[0..1]\n"));
    free(text);
    plans_free(&set);
}

static void halving_takes_a_transfer_an_exchange(void **state)
{
    plan_set set = built("halving", PLAN_ALL_REDUCE, 8, 8);
    char *text = printed(&set, print_table);
    assert_int_equal(occurrences(text, "after transfer"), 6);
    assert_non_null(strstr(text, "G00+G10"));
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

static char *checked_trace(const plan_set *set, const plan_prices *at)
{
    char *text = printed(set, at == &prices ? print_trace : print_mapped_trace);
    int64_t steps = 0;
    for (int rank = 0; rank < set->ranks; rank++)
        steps += plan_length(set->of[rank]);
    assert_int_equal(occurrences(text, "\"ph\":\"X\""), steps);
    assert_int_equal(occurrences(text, "{"), occurrences(text, "}"));
    assert_int_equal(occurrences(text, "\"thread_name\""), set->ranks);
    return text;
}

/* All ranks' time lines together end where those of a few that are priced do. */
static void check_trace(const char *algorithm, plan_collective collective, int ranks,
                        const plan_prices *at, double tolerance)
{
    const plan_world world = plans_world(ranks, 0);
    const algo *a = algo_find(algorithm);
    const algo_call call = {collective, &world, 0, 0, a->chunks(collective, &world, 0)};
    plan_set set = built(algorithm, collective, ranks, call.chunks);
    char *text = checked_trace(&set, at);
    const double end = end_of_trace(text);
    double price;
    assert_int_equal(algo_price(a, &call, 1000, 4, 4, at, &price), RING_OK);
    if (end < price / tolerance || end > price * tolerance)
        fail_msg("%s by %s, %d ranks: the trace ends at %g, the price is %g",
                 plan_collective_name(collective), algorithm, ranks, end, price);
    free(text);
    plans_free(&set);
}

static void a_trace_ends_when_the_price_says(void **state)
{
    static const plan_prices *const both[] = {&prices, &mapping};
    for (int ranks = 2; ranks <= 10; ranks++) {
        for (int i = 0; i < 2; i++) {
            const double pipelined = i == 0 ? 1.5 : 2; /* fill is priced as if it were carried */
            check_trace("ring", PLAN_ALL_REDUCE, ranks, both[i], 1.02);
            check_trace("direct", PLAN_ALL_REDUCE, ranks, both[i], 1.02);
            check_trace("oneshot", PLAN_ALL_REDUCE, ranks, both[i], 1.02);
            check_trace("halving", PLAN_ALL_REDUCE, ranks, both[i],
                        (ranks & (ranks - 1)) == 0 ? 1.02 : 1.5);
            check_trace("tree", PLAN_ALL_REDUCE, ranks, both[i], pipelined);
            check_trace("tree", PLAN_BROADCAST, ranks, both[i], pipelined);
            check_trace("tree", PLAN_REDUCE, ranks, both[i], pipelined);
            check_trace("chain", PLAN_ALL_REDUCE, ranks, both[i], pipelined);
        }
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
        cmocka_unit_test(ranges_scratch_and_eager_sends_are_named),
        cmocka_unit_test(halving_takes_a_transfer_an_exchange),
        cmocka_unit_test(a_trace_ends_when_the_price_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
