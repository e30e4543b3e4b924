/* SPDX-License-Identifier: Apache-2.0
 * Threads share the cores of their process out equally, or leave them alone where there are fewer
 * cores than threads. */
#include "threads.h"

#include <sched.h>

#include "unit_test.h"

enum { THREADS = 4 };

typedef struct taker {
    int k, count;
    cpu_set_t before, after;
    bool took;
} taker;

static void take(void *element)
{
    taker *t = element;
    sched_getaffinity(0, sizeof t->before, &t->before);
    t->took = threads_take_cores(t->k, t->count);
    sched_getaffinity(0, sizeof t->after, &t->after);
}

/* Whether shares were taken: then they are equal, and no CPU is in two of them. */
static bool take_shares(int count)
{
    taker takers[THREADS];
    cpu_set_t both, all;
    CPU_ZERO(&all);
    for (int k = 0; k < count; k++)
        takers[k] = (taker){.k = k, .count = count};
    assert_int_equal(threads_run(take, takers, sizeof *takers, count), count);
    for (int k = 0; k < count; k++) {
        const taker *t = &takers[k];
        assert_int_equal(t->took, takers[0].took);
        assert_true(t->took || CPU_EQUAL(&t->before, &t->after));
        CPU_AND(&both, &all, &t->after);
        assert_true(!t->took || CPU_COUNT(&both) == 0);
        CPU_OR(&all, &all, &t->after);
        CPU_AND(&both, &t->before, &t->after);
        assert_true(CPU_COUNT(&t->after) > 0 && CPU_EQUAL(&both, &t->after));
    }
    return takers[0].took;
}

static void cores_are_shared_out_equally(void **state)
{
    for (int count = 1; count <= THREADS; count++)
        if (!take_shares(count))
            assert_true(count > 1);
}

/* CPUs that are siblings on one core are one core. */
static void threads_that_outnumber_the_cores_stay_free(void **state)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_true(take_shares(1));
    assert_false(take_shares(2));
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_false(threads_take_cores(0, CPU_SETSIZE + 1));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(cores_are_shared_out_equally),
        cmocka_unit_test(threads_that_outnumber_the_cores_stay_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
