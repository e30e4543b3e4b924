/* SPDX-License-Identifier: Apache-2.0
 * A library that computes wrongly is found out, from one bit on, on whichever rank. */
#include "shell.h"

#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

static int run_broken(const char *way)
{
    return shell("BREAK=%s LD_PRELOAD=" BREAKER " " PROGRAMS
                 "/ringperf all_reduce -t 2 -b 4K -e 4K -n 2",
                 way);
}

static void one_wrong_each_way(char **words, size_t count)
{
    assert_int_equal(count, 14);
    assert_string_equal(words[8], "1");
    assert_string_equal(words[12], "1");
}

static void one_flipped_bit_is_one_wrong_value_and_status_1(void **state)
{
    assert_int_equal(run_broken("value"), 1);
    assert_int_equal(shell_rows(one_wrong_each_way), 1);
    assert_int_equal(shell_count("# Out of bounds values : 2 FAILED"), 1);
}

static void many_wrong_each_way(char **words, size_t count)
{
    assert_int_equal(count, 14);
    assert_true(atof(words[8]) > 900);
    assert_true(atof(words[12]) > 900);
}

static void an_output_that_never_arrives_is_wrong(void **state)
{
    assert_int_equal(run_broken("stale"), 1);
    assert_int_equal(shell_rows(many_wrong_each_way), 1);
    assert_int_equal(shell_count("# Out of bounds values : 0 OK"), 0);
    assert_int_equal(shell_count(" FAILED\n"), 1);
}

static void no_value_is_wrong(char **words, size_t count)
{
    assert_int_equal(count, 14);
    assert_string_equal(words[8], "0");
}

static void a_write_past_the_end_is_out_of_bounds_and_status_1(void **state)
{
    assert_int_equal(run_broken("guard"), 1);
    assert_int_equal(shell_rows(no_value_is_wrong), 1);
    assert_int_equal(shell_count("# Out of bounds values : 2 FAILED"), 1);
}

static void the_breaker_alone_breaks_nothing(void **state)
{
    assert_int_equal(run_broken("nothing"), 0);
    assert_int_equal(shell_rows(no_value_is_wrong), 1);
    assert_int_equal(shell_count("# Out of bounds values : 0 OK"), 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_flipped_bit_is_one_wrong_value_and_status_1),
        cmocka_unit_test(an_output_that_never_arrives_is_wrong),
        cmocka_unit_test(a_write_past_the_end_is_out_of_bounds_and_status_1),
        cmocka_unit_test(the_breaker_alone_breaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
