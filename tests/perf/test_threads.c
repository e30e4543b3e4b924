/* SPDX-License-Identifier: Apache-2.0
 * Where not all threads can be started, those that could do not wait for the others. */
#include "shell.h"

#include "unit_test.h"

#define RINGPERF PROGRAMS "/ringperf "
#define RINGLIMIT PROGRAMS "/ringlimit "

static void ranks_that_cannot_start_are_one_line(void **state)
{
    assert_int_equal(shell("RING_INIT_TIMEOUT=3 THREADS=2 LD_PRELOAD=" NO_THREAD " " RINGPERF
                           "all_reduce -t 3 -b 8 -e 8"),
                     3);
    assert_int_equal(shell_count("cannot start more than 2 of 3 threads"), 1);
    assert_int_equal(shell_count("\n"), 1);
}

static void nothing_is_measured_with_one_thread(void **state)
{
    static const char *const names[] = {"line", "futex", "all_reduce", "tcp"};
    for (int threads = 0; threads < 2; threads++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            assert_int_equal(shell("THREADS=%d LD_PRELOAD=" NO_THREAD " timeout 20 " RINGLIMIT
                                   "%s -b 8 -e 8 >/dev/null",
                                   threads, names[i]),
                             3);
            assert_true(shell_count("cannot start two threads") >= 1);
        }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_cannot_start_are_one_line),
        cmocka_unit_test(nothing_is_measured_with_one_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
