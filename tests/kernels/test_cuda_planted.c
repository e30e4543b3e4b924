/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulation catches mistakes of kernels: those of planted.cu, each run in a child. Races show
 * under ThreadSanitizer alone, writes out of bounds under AddressSanitizer. */

#include "unit_test.h"

#include "gpu_launch.h"
#include "planted.h"
#include "util/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { GRID = 2, WORDS = GRID * PLANTED_THREADS };

#ifdef __SANITIZE_THREAD__
static const bool sees_races = true;
#else
static const bool sees_races = false;
#endif
#ifdef __SANITIZE_ADDRESS__
static const bool sees_bounds = true;
#else
static const bool sees_bounds = false;
#endif

/* @return the words after it; @p trapped: it did. */
static uint32_t *launch(const char *kernel, int order, bool *trapped)
{
    uint32_t *words = aligned_alloc(16, WORDS * sizeof *words);
    for (uint32_t i = 0; words != NULL && i < WORDS; i++)
        words[i] = i;
    const planted_args args = {words, WORDS};
    emulated_set_order(order, 3);
    *trapped = !emulated_launch_run(
        &(emulated_launch){emulated_kernel_find(kernel), &args, GRID, PLANTED_THREADS, true});
    return words;
}

static bool is_turned(const uint32_t *words)
{
    for (uint32_t i = 0; i < WORDS; i++)
        if (words[i] !=
            i / PLANTED_THREADS * PLANTED_THREADS + PLANTED_THREADS - 1 - i % PLANTED_THREADS)
            return false;
    return true;
}

/* ---- Children: what they print is looked at ------------------------------------------------- */

static void run_in_child(const void *kernel)
{
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    for (int order = EMULATED_FORWARD; order <= EMULATED_RANDOM; order++) {
        bool trapped;
        uint32_t *words = launch(kernel, order, &trapped);
        printf("order %d:%s%s\n", order, is_turned(words) ? " turned" : " wrong",
               trapped ? " trapped" : "");
        free(words);
    }
    printf("all launched\n");
    exit(0); /* ThreadSanitizer's status, if it has seen something */
}

static void expect_said(const char *kernel, const char *what)
{
    child_run(run_in_child, kernel);
    if (strstr(child_said, what) == NULL)
        fail_msg("%s: \"%s\" is not in what was said:\n%s", kernel, what, child_said);
}

static void expect_no_mistake(const char *kernel)
{
    const int status = child_run(run_in_child, kernel);
    if (status != 0 || strstr(child_said, "wrong") != NULL || strstr(child_said, "WARNING: Thread"))
        fail_msg("%s: exit status %d\n%s", kernel, status, child_said);
}

static void skip_unless(bool seen, const char *reason)
{
    if (seen)
        return;
    printf("SKIPPED: %s\n", reason);
    skip();
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void test_a_right_kernel_is_right_in_every_order(void **state)
{
    expect_no_mistake("planted_turn");
    assert_non_null(strstr(child_said, "all launched"));
}

static void test_a_missing_barrier_gives_wrong_values_in_some_order(void **state)
{
    expect_said("planted_no_barrier", "wrong");
    if (sees_races)
        expect_said("planted_no_barrier", "data race");
}

static void test_races_of_blocks_and_of_threads_are_seen(void **state)
{
    skip_unless(sees_races, "races are seen by ThreadSanitizer alone (preset tsan)");
    expect_said("planted_race_of_blocks", "data race");
    expect_said("planted_race_of_threads", "data race");
}

static void test_a_write_out_of_bounds_is_seen(void **state)
{
    skip_unless(sees_bounds,
                "writes out of bounds are seen by AddressSanitizer alone (preset asan)");
    expect_said("planted_out_of_bounds", "heap-buffer-overflow");
}

static void test_a_barrier_that_not_all_threads_come_to_aborts(void **state)
{
    expect_said("planted_divergence", "a barrier that some threads of the block have not come to");
    assert_null(strstr(child_said, "all launched"));
}

static void test_a_trap_ends_the_launch(void **state)
{
    for (int order = EMULATED_FORWARD; order <= EMULATED_RANDOM; order++) {
        bool trapped;
        uint32_t *words = launch("planted_trap", order, &trapped);
        assert_true(trapped);
        assert_int_equal(words[0], 0); /* no thread of its block has passed the barrier */
        assert_int_equal(words[2], 2);
        free(words);
    }
}

static void test_an_access_that_is_not_aligned_aborts(void **state)
{
    expect_said("planted_misalignment", "an access of a thread that is not aligned to its size");
    assert_null(strstr(child_said, "all launched"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_right_kernel_is_right_in_every_order),
        cmocka_unit_test(test_a_missing_barrier_gives_wrong_values_in_some_order),
        cmocka_unit_test(test_races_of_blocks_and_of_threads_are_seen),
        cmocka_unit_test(test_a_write_out_of_bounds_is_seen),
        cmocka_unit_test(test_a_barrier_that_not_all_threads_come_to_aborts),
        cmocka_unit_test(test_a_trap_ends_the_launch),
        cmocka_unit_test(test_an_access_that_is_not_aligned_aborts),
    };
    setvbuf(stdout, NULL, _IONBF, 0); /* of children, too */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
