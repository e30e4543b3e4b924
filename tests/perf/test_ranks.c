/* SPDX-License-Identifier: Apache-2.0
 * ringperf with its ranks as processes under ringrun, and as threads of several processes. */
#include "shell.h"

#include <stdlib.h>

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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_processes_print_one_table),
        cmocka_unit_test(threads_of_two_processes_are_four_ranks),
        cmocka_unit_test(the_json_file_is_written_once),
        cmocka_unit_test(the_status_of_the_ranks_is_that_of_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
