/* SPDX-License-Identifier: Apache-2.0
 * ringperf with its ranks as processes under ringrun, and as threads of several processes. */
#include "shell.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "unit_test.h"

#define RINGRUN PROGRAMS "/ringrun -n 2 "
#define RINGPERF PROGRAMS "/ringperf "

static void row_is_right(char **words, size_t count)
{
    assert_int_equal(count, 14);
    assert_string_equal(words[8], "0");
    assert_true(atof(words[5]) > 0);
}

static void two_processes_print_one_table(void **state)
{
    static const char *const transports[] = {"shm", "tcp"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(shell("RING_TRANSPORT=%s " RINGRUN RINGPERF
                               "all_reduce -b 8 -e 512K -f 8 -n 3",
                               transports[i]),
                         0);
        assert_int_equal(shell_rows(row_is_right), 6);
        assert_int_equal(shell_count("# Collective test concluded"), 1);
        assert_int_equal(shell_count("#  Rank"), 2);
        assert_int_equal(shell_count(transports[i]) >= 2, 1);
    }
}

static void threads_of_two_processes_are_four_ranks(void **state)
{
    assert_int_equal(shell(RINGRUN RINGPERF "all_reduce -t 2 -b 1K -e 1K -n 3"), 0);
    assert_int_equal(shell_count("#  Rank"), 4);
    assert_int_equal(shell_rows(row_is_right), 1);
}

static void only_rank_0_writes_json(const cJSON *object)
{
    assert_int_equal(cJSON_GetObjectItem(object, "ranks")->valueint, 2);
}

static void the_json_file_is_written_once(void **state)
{
    const char *file = shell_file();
    assert_int_equal(shell(RINGRUN RINGPERF "broadcast -b 1K -e 1K -n 3 --json %s", file), 0);
    assert_int_equal(shell_json_lines(file, only_rank_0_writes_json), 2);
    shell_forget();
}

static void the_status_of_the_ranks_is_that_of_the_run(void **state)
{
    assert_int_equal(shell("RINGPERF_MIN_BW=1e9 " RINGRUN RINGPERF "all_reduce -b 8 -e 8"), 1);
}

/* The thread that waits for them may run anywhere, each of the two on its core alone. */
static void threads_have_a_core_each(void **state)
{
    cpu_set_t all;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_int_equal(shell(
                         "sort -u /sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list"),
                     0);
    if (shell_count("\n") < 2 || CPU_COUNT(&all) < sysconf(_SC_NPROCESSORS_ONLN))
        skip();
    assert_int_equal(shell("timeout 60 " RINGPERF "barrier -t 2 -N 0 >/dev/null & run=$!; "
                           "for i in $(seq 500); do sleep 0.05; p=$(pgrep -P $run) && "
                           "masks=$(grep -h Cpus_allowed_list /proc/$p/task/*/status | sort -u | "
                           "wc -l) && [ $masks -ge 3 ] && break; done; "
                           "kill $run; wait $run; [ $masks -ge 3 ]"),
                     0);
}

/* ---- Predictions ---- */

static void no_time_is_predicted(char **words, size_t count)
{
    assert_int_equal(count, 14);
    assert_string_equal(words[13], "N/A");
}

static void prediction_is_null(const cJSON *object)
{
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(object, "predicted_us")));
}

static void no_time_is_predicted_for_ranks_that_share_a_core(void **state)
{
    const char *file = shell_file();
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(shell(RINGRUN RINGPERF "all_reduce -b 8 -e 8 -n 3 --json %s", file), 0);
    assert_int_equal(shell_rows(no_time_is_predicted), 1);
    assert_int_equal(shell_count("# Note: ranks share cores"), 1);
    assert_int_equal(shell_json_lines(file, prediction_is_null), 2);
    assert_int_equal(shell(RINGPERF "all_reduce -b 8 -e 8 -n 3 -t 2"), 0);
    assert_int_equal(shell_rows(no_time_is_predicted), 1);
    assert_int_equal(shell_count("# Note: ranks share cores"), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    shell_forget();
}

static void no_time_is_predicted_for_pairs(void **state)
{
    const char *file = shell_file();
    assert_int_equal(shell(RINGRUN RINGPERF "sendrecv -b 8 -e 4K -f 512 -n 3 --json %s", file), 0);
    assert_int_equal(shell_rows(no_time_is_predicted), 2);
    assert_int_equal(shell_count("# Note: ranks share cores"), 0);
    assert_int_equal(shell_json_lines(file, prediction_is_null), 2);
    shell_forget();
}

static double predicted_us;

static void all_reduce_is_predicted(const cJSON *object)
{
    const double us = cJSON_GetObjectItem(object, "predicted_us")->valuedouble;
    assert_true(us > 0 && (predicted_us == 0 || predicted_us == us));
    predicted_us = us;
}

static void barriers_beside_the_calls_are_not_what_is_predicted(void **state)
{
    static const char *const ways[] = {"",           "-z 1",       "-z 3",
                                       "--hot -z 1", "--hot -z 3", "--prepared"};
    const char *file = shell_file();
    predicted_us = 0;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        assert_int_equal(shell(RINGPERF "all_reduce -b 64K -e 64K -n 3 %s --json %s", ways[i],
                               file),
                         0);
        assert_int_equal(shell_json_lines(file, all_reduce_is_predicted), 2);
    }
    shell_forget();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_processes_print_one_table),
        cmocka_unit_test(threads_of_two_processes_are_four_ranks),
        cmocka_unit_test(the_json_file_is_written_once),
        cmocka_unit_test(the_status_of_the_ranks_is_that_of_the_run),
        cmocka_unit_test(threads_have_a_core_each),
        cmocka_unit_test(no_time_is_predicted_for_ranks_that_share_a_core),
        cmocka_unit_test(no_time_is_predicted_for_pairs),
        cmocka_unit_test(barriers_beside_the_calls_are_not_what_is_predicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
