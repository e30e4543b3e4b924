/* SPDX-License-Identifier: Apache-2.0
 * The checker proves every collective of one algorithm (the argument) for 1 to 64 ranks, for
 * several chunkings and roots, and for the chunks that the algorithm itself asks for: all with
 * RING_TEST_LONG, else those of few ranks and a sample of the others (draw.h). */
#include "draw.h"
#include "plans.h"

#include <string.h>

#include "unit_test.h"

static const char *algorithm;

static uint64_t drawn; /* state of the sample */

static void prove(const plan_case *c)
{
    plan_set set = plans_build(c);
    plans_expect_proven(&set);
    plans_free(&set);
}

/* Sanitizers are an order of magnitude slower. */
static bool is_tried(int ranks)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    enum { ONE_IN = 400 };
#else
    enum { ONE_IN = 40 };
#endif
    return ranks <= 4 || test_is_long() || test_draw(&drawn, ONE_IN) == 0;
}

static void prove_if_tried(const plan_case *c)
{
    if (is_tried(c->ranks))
        prove(c);
}

static void every_collective_is_proven_for_1_to_64_ranks(void **state)
{
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
        plans_each_case(algorithm, ranks, prove_if_tried);
}

static void prove_own_choices(plan_case c)
{
    int before = -1;
    for (size_t bytes = 1; bytes < (size_t)1 << 32; bytes *= 4) {
        const plan_world world = plans_world(c.ranks, c.per_host);
        c.chunks = c.algorithm->chunks(c.collective, &world, bytes);
        if (c.chunks != before)
            prove_if_tried(&c);
        before = c.chunks;
    }
}

static void own_choice_of_chunks_is_proven_at_every_size(void **state)
{
    const algo *a = algo_find(algorithm);
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (int c = 0; c <= PLAN_BARRIER; c++)
            for (int per_host = 0; per_host <= 3 && a->supports((plan_collective)c); per_host += 3)
                prove_own_choices(
                    (plan_case){a, (plan_collective)c, ranks, ranks / 3, 0, per_host});
}

static plan *build(plan_collective collective, int rank, int root, int chunks)
{
    const plan_world world = plans_world(4, 0);
    return algo_find(algorithm)->build(&(algo_call){collective, &world, rank, root, chunks});
}

static void wrong_calls_give_no_plan_but_a_reason(void **state)
{
    assert_null(build(PLAN_BROADCAST, 4, 0, 4));
    assert_null(build(PLAN_BROADCAST, -1, 0, 4));
    assert_null(build(PLAN_BROADCAST, 0, 4, 4));
    assert_null(build(PLAN_BROADCAST, 0, 0, 0));
    assert_null(build(PLAN_SEND, 0, 0, 4));
    assert_non_null(strstr(fail_text(), "does not support send"));
    if (!algo_find(algorithm)->supports(PLAN_REDUCE_SCATTER))
        return;
    assert_null(build(PLAN_REDUCE_SCATTER, 0, 0, 6));
    assert_non_null(strstr(fail_text(), "multiple of 4 chunks"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective_is_proven_for_1_to_64_ranks),
        cmocka_unit_test(own_choice_of_chunks_is_proven_at_every_size),
        cmocka_unit_test(wrong_calls_give_no_plan_but_a_reason),
    };
    if (argc != 2 || algo_find(argv[1]) == NULL)
        return 2;
    algorithm = argv[1];
    drawn = test_seed();
    return cmocka_run_group_tests_name(argv[1], tests, NULL, NULL);
}
