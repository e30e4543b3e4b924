/* SPDX-License-Identifier: Apache-2.0
 * ringperf with its ranks as threads: every collective, every type, every way to start it. */
#include "shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

#define RINGPERF PROGRAMS "/ringperf "

static void row_is_right(char **words, size_t count)
{
    assert_int_equal(count, 14);
    assert_string_equal(words[8], "0");
    assert_string_equal(words[12], "0");
    assert_true(atof(words[5]) > 0);
    assert_true(atof(words[13]) >= 0);
}

static void half_row_is_right(char **words, size_t count)
{
    assert_int_equal(count, 14);
    assert_string_equal(words[8], "0");
    assert_string_equal(words[12], "N/A");
}

static void every_collective_is_right_on_two_threads(void **state)
{
    static const char *const names[] = {"all_reduce",  "reduce_scatter",  "all_gather",
                                        "broadcast",   "reduce",          "gather",
                                        "scatter",     "all_gather_v",    "reduce_scatter_v",
                                        "gather_v",    "scatter_v",       "scan",
                                        "exscan",      "all_gather_list", "reduce_scatter_list",
                                        "gather_list", "scatter_list"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(shell(RINGPERF "%s -t 2 -b 8 -e 512K -f 8 -n 3", names[i]), 0);
        assert_int_equal(shell_rows(row_is_right), 6);
        assert_int_equal(shell_count("# Out of bounds values : 0 OK"), 1);
    }
}

static void what_has_no_in_place_form_leaves_it_out(void **state)
{
    assert_int_equal(shell(RINGPERF "sendrecv -t 2 -b 8 -e 64K -f 8 -n 3"), 0);
    assert_int_equal(shell_rows(half_row_is_right), 5);
    assert_int_equal(shell(RINGPERF "all_to_all -t 3 -b 24 -e 96K -f 8 -n 3"), 0);
    assert_int_equal(shell_rows(half_row_is_right), 5);
    assert_int_equal(shell(RINGPERF "alltoallv -t 3 -b 24 -e 96K -f 8 -n 3"), 0);
    assert_int_equal(shell_rows(half_row_is_right), 5);
    assert_int_equal(shell(RINGPERF "all_to_all_list -t 3 -b 24 -e 96K -f 8 -n 3"), 0);
    assert_int_equal(shell_rows(half_row_is_right), 5);
    assert_int_equal(shell(RINGPERF "barrier -t 2 -n 3"), 0);
    assert_int_equal(shell_rows(half_row_is_right), 1);
}

static void every_type_and_op_is_right_on_three_threads(void **state)
{
    assert_int_equal(shell(RINGPERF "all_reduce -t 3 -d all -o all -b 4000 -e 4000 -n 1 -u 1"), 0);
    assert_int_equal(shell_rows(row_is_right), 14 * 5 + 8 * 6 + 6);
    assert_int_equal(shell(RINGPERF "scan -t 3 -d float -o all -b 4000 -e 4000 -n 1"), 0);
    assert_int_equal(shell_rows(row_is_right), 5);
    assert_int_equal(shell(RINGPERF "exscan -t 3 -d all -o land -b 4000 -e 4000 -n 1"), 0);
    assert_int_equal(shell_rows(row_is_right), 8);
    assert_int_equal(shell(RINGPERF "exscan -t 3 -o avg -b 4000 -e 4000 -n 1"), 2);
    assert_int_equal(shell_count("--op avg averages over all ranks"), 1);
    assert_int_equal(shell(RINGPERF "reduce -t 3 -d bfloat16 -r all -b 4000 -e 4000 -n 1"), 0);
    assert_int_equal(shell_rows(row_is_right), 3);
}

static void plain_buffers_back_to_back_calls_and_several_at_once_are_right(void **state)
{
    static const char *const ways[] = {"--buffer plain", "--hot",      "--prepared", "-m 3",
                                       "-z 1",           "--hot -z 3", "-a 0",       "-w 0",
                                       "-N 2",           "-c 3",       "-T 60",      "-p 1"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        assert_int_equal(shell(RINGPERF "all_reduce -t 2 -b 1K -e 1K -n 3 %s", ways[i]), 0);
        assert_true(shell_rows(row_is_right) >= 1);
    }
}

static void sends_and_receives_may_be_tagged(void **state)
{
    assert_int_equal(shell(RINGPERF "sendrecv -t 3 -b 64K -e 256K -f 4 -n 3 --tagged"), 0);
    assert_int_equal(shell_rows(half_row_is_right), 2);
    assert_int_equal(shell(RINGPERF "all_reduce -t 2 -b 8 -e 8 --tagged"), 2);
    assert_int_equal(shell_count("all_reduce has no tags"), 1);
}

static void unchecked_row(char **words, size_t count)
{
    assert_int_equal(count, 14);
    assert_string_equal(words[8], "N/A");
}

static void without_checks_nothing_is_claimed(void **state)
{
    assert_int_equal(shell(RINGPERF "all_reduce -t 2 -b 1K -e 1K -n 3 -c 0"), 0);
    assert_int_equal(shell_rows(unchecked_row), 1);
}

static void one_rank_alone_is_a_plain_case(void **state)
{
    assert_int_equal(shell(RINGPERF "all_reduce -b 0 -e 1K -i 1K -n 3"), 0);
    assert_int_equal(shell_rows(row_is_right), 2);
    assert_int_equal(shell(RINGPERF "sendrecv -b 8 -e 8"), 2);
    assert_int_equal(shell_count("at least 2 ranks"), 1);
}

static void a_line_is_whole(const cJSON *object)
{
    const cJSON *wrong = cJSON_GetObjectItem(object, "wrong");
    assert_true(cJSON_IsNumber(wrong) && wrong->valueint == 0);
    assert_int_equal(cJSON_GetObjectItem(object, "ranks")->valueint, 2);
    assert_true(cJSON_GetObjectItem(object, "time_us")->valuedouble > 0);
    assert_true(strlen(cJSON_GetObjectItem(object, "transport")->valuestring) > 0);
    assert_true(strlen(cJSON_GetObjectItem(object, "algorithm")->valuestring) > 0);
}

static void json_is_written_anew_with_two_lines_a_size(void **state)
{
    const char *file = shell_file();
    for (int again = 0; again < 2; again++) {
        assert_int_equal(shell(RINGPERF "all_reduce -t 2 -b 8 -e 32 -f 2 -n 3 --json %s", file), 0);
        assert_int_equal(shell_json_lines(file, a_line_is_whole), 6);
    }
    shell_forget();
}

static void a_file_that_cannot_be_written_ends_all_ranks(void **state)
{
    assert_int_equal(shell(RINGPERF "all_reduce -t 2 -b 8 -e 8 --json /nowhere/x.json"), 3);
    assert_int_equal(shell_count("/nowhere/x.json"), 2); /* once a rank */
}

static void results_that_are_lost_are_a_failure(void **state)
{
    static const char *const ways[] = {"all_reduce -t 2 -b 8 -e 8 --json /dev/full >/dev/null",
                                       "all_reduce -t 2 -b 8 -e 8 >/dev/full",
                                       "plan all_reduce --ranks 3 >/dev/full", "--help >/dev/full"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        assert_int_equal(shell(RINGPERF "%s", ways[i]), 3);
        assert_int_equal(shell_count("not all of it could be written"), 1);
        assert_int_equal(shell_count("\n"), 1);
    }
}

static void sizes_that_do_not_fit_are_a_failure(void **state)
{
    assert_int_equal(shell(RINGPERF "all_reduce -t 2 -b 1000T -e 1000T -n 1 >/dev/null"), 3);
    assert_int_equal(shell_count("nothing to measure"), 1);
    assert_int_equal(shell_count("\n"), 1);
}

static void sizes_mean_nothing_to_a_barrier(void **state)
{
    assert_int_equal(shell(RINGPERF "barrier -t 2 -b 1000T -e 1000T -n 3"), 0);
    assert_int_equal(shell_rows(half_row_is_right), 1);
    assert_int_equal(shell_count("Reducing maxBytes"), 0);
}

static void too_slow_is_a_failure(void **state)
{
    assert_int_equal(shell("RINGPERF_MIN_BW=1e9 " RINGPERF "all_reduce -t 2 -b 1K -e 1K"), 1);
    assert_int_equal(shell_count("FAILED"), 1);
    assert_int_equal(shell("NCCL_TESTS_MIN_BW=0 " RINGPERF "all_reduce -t 2 -b 1K -e 1K"), 0);
    assert_int_equal(shell_count("Avg bus bandwidth"), 1);
}

static void wrong_usage_is_one_line_and_status_2(void **state)
{
    assert_int_equal(shell(RINGPERF "sort"), 2);
    assert_int_equal(shell_count("\n"), 1);
    assert_int_equal(shell(RINGPERF), 2);
    assert_int_equal(shell(RINGPERF "all_reduce -b 1Z"), 2);
    assert_int_equal(shell(RINGPERF "all_reduce -t 2 -o lxor -d float"), 2);
    assert_int_equal(shell_count("integers"), 1);
    assert_int_equal(shell(RINGPERF "reduce -t 2 -r 2 -b 8 -e 8"), 2);
    assert_int_equal(shell_count("--root"), 1);
    assert_int_equal(shell(RINGPERF "--help"), 0);
    assert_int_equal(shell(RINGPERF "--version"), 0);
}

static void a_start_that_fails_is_told_once(void **state)
{
    assert_int_equal(shell("RING_ALGO=rign " RINGPERF "all_reduce -b 8 -e 8"), 3);
    assert_int_equal(shell_count("RING_ALGO=rign: no such algorithm"), 1);
    assert_int_equal(shell_count("\n"), 1);
}

static void a_link_at_the_place_of_results_is_not_followed(void **state)
{
    assert_true(shell_replaces_link(RINGPERF "barrier -t 2 -n 1 --json"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective_is_right_on_two_threads),
        cmocka_unit_test(what_has_no_in_place_form_leaves_it_out),
        cmocka_unit_test(every_type_and_op_is_right_on_three_threads),
        cmocka_unit_test(plain_buffers_back_to_back_calls_and_several_at_once_are_right),
        cmocka_unit_test(sends_and_receives_may_be_tagged),
        cmocka_unit_test(without_checks_nothing_is_claimed),
        cmocka_unit_test(one_rank_alone_is_a_plain_case),
        cmocka_unit_test(json_is_written_anew_with_two_lines_a_size),
        cmocka_unit_test(a_start_that_fails_is_told_once),
        cmocka_unit_test(a_link_at_the_place_of_results_is_not_followed),
        cmocka_unit_test(a_file_that_cannot_be_written_ends_all_ranks),
        cmocka_unit_test(results_that_are_lost_are_a_failure),
        cmocka_unit_test(sizes_that_do_not_fit_are_a_failure),
        cmocka_unit_test(sizes_mean_nothing_to_a_barrier),
        cmocka_unit_test(too_slow_is_a_failure),
        cmocka_unit_test(wrong_usage_is_one_line_and_status_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
