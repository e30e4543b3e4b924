/* SPDX-License-Identifier: Apache-2.0
 * ringlimit measures what it names and nothing else. */
#include "shell.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

#define RINGLIMIT PROGRAMS "/ringlimit "

static void row_is_sane(char **words, size_t count)
{
    assert_int_equal(count, 3);
    assert_true(atof(words[1]) > 0);
}

static void all_is_measured_without_names(void **state)
{
    assert_int_equal(shell(RINGLIMIT "-b 8 -e 64K -f 64 -n 5"), 0);
    assert_int_equal(shell_rows(row_is_sane), 6); /* 8, 512, 32K: allreduce and TCP */
    assert_int_equal(shell_count("hand-over of a cache line"), 1);
    assert_true(shell_count("hand-over of a futex") >= 1);
    assert_int_equal(shell_count("meeting by a pushed line with 8 bytes"), 1);
    assert_int_equal(shell_count("meeting by a pushed line with 40 bytes"), 1);
    assert_int_equal(shell_count("matrix products of a step, mlp with 64 samples : "), 1);
}

static void names_choose(void **state)
{
    assert_int_equal(shell(RINGLIMIT "tcp -b 1K -e 1K -n 5"), 0);
    assert_int_equal(shell_rows(row_is_sane), 1);
    assert_int_equal(shell_count("hand-over"), 0);
    assert_int_equal(shell_count("all_reduce"), 0);
    assert_int_equal(shell(RINGLIMIT "allreduce -b 1K -e 1K -n 5"), 0);
    assert_int_equal(shell_rows(row_is_sane), 1);
    assert_int_equal(shell(RINGLIMIT "allreduceX"), 2);
    assert_int_equal(shell_count("unknown measurement \"allreduceX\"; did you mean all_reduce?"),
                     1);
}

static void a_line_is_whole(const cJSON *object)
{
    assert_string_equal(cJSON_GetObjectItem(object, "measurement")->valuestring, "all_reduce");
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(object, "aliased")));
    assert_true(cJSON_GetObjectItem(object, "time_us")->valuedouble > 0);
}

static void json_has_a_line_a_size(void **state)
{
    const char *file = shell_file();
    assert_int_equal(shell(RINGLIMIT "all_reduce --aliased -b 0 -e 8K -i 4K -n 5 --json %s", file),
                     0);
    assert_int_equal(shell_json_lines(file, a_line_is_whole), 3);
    shell_forget();
}

static void a_push_is_whole(const cJSON *object)
{
    static int bytes = 8;
    assert_string_equal(cJSON_GetObjectItem(object, "measurement")->valuestring, "push");
    assert_int_equal(cJSON_GetObjectItem(object, "bytes")->valueint, bytes);
    assert_true(cJSON_GetObjectItem(object, "time_us")->valuedouble > 0);
    bytes = 40;
}

static void a_push_has_a_line_a_payload(void **state)
{
    const char *file = shell_file();
    assert_int_equal(shell(RINGLIMIT "push --json %s", file), 0);
    assert_int_equal(shell_json_lines(file, a_push_is_whole), 2);
    assert_int_equal(shell_count("hand-over"), 0);
    shell_forget();
}

static void a_product_is_whole(const cJSON *object)
{
    assert_string_equal(cJSON_GetObjectItem(object, "measurement")->valuestring, "products");
    assert_string_equal(cJSON_GetObjectItem(object, "model")->valuestring, "lenet5");
    assert_int_equal(cJSON_GetObjectItem(object, "batch")->valueint, 3);
    /* 400-120-84-10, three products each: the convolutions before them want a gradient, too. */
    const double multiplied = 3 * 3.0 * (400 * 120 + 120 * 84 + 84 * 10);
    const double us = cJSON_GetObjectItem(object, "time_us")->valuedouble;
    const double flops = cJSON_GetObjectItem(object, "gflops")->valuedouble * us * 1e3;
    assert_true(us > 0);
    assert_true(fabs(flops / (2 * multiplied) - 1) < 1e-6);
}

static void products_are_those_of_the_network(void **state)
{
    const char *file = shell_file();
    assert_int_equal(shell(RINGLIMIT "products --model lenet5 --batch 3 -n 5 --json %s", file), 0);
    assert_int_equal(shell_json_lines(file, a_product_is_whole), 1);
    assert_int_equal(shell(RINGLIMIT "products --model nothing"), 3);
    assert_int_equal(shell_count("there is no model called nothing"), 1);
    shell_forget();
}

static void wrong_words_are_refused(void **state)
{
    static const char *const wrong[] = {"gpu",  "-b",      "-b x",      "-n 0",
                                        "-f 1", "--bogus", "-b 8 -e 4", "-i 0"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(shell(RINGLIMIT "%s", wrong[i]), 2);
        assert_int_equal(shell_count("\n"), 1);
        assert_int_equal(shell_count("see ringlimit --help"), 1);
    }
    assert_int_equal(shell(RINGLIMIT "tcp -b 8 -n 0"), 2);
    assert_int_equal(shell_count("-n 0: expected a whole number from 1 to 1000000; see"), 1);
}

static void the_help_names_the_exit_codes(void **state)
{
    assert_int_equal(shell(RINGLIMIT "--help"), 0);
    assert_int_equal(shell_count("Exit status: 0 good, 2 usage, 3 anything else"), 1);
}

static void results_that_are_lost_are_a_failure(void **state)
{
    static const char *const ways[] = {"line --json /dev/full >/dev/null", "line >/dev/full",
                                       "--help >/dev/full"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        assert_int_equal(shell(RINGLIMIT "%s", ways[i]), 3);
        assert_int_equal(shell_count("not all of it could be written"), 1);
        assert_int_equal(shell_count("\n"), 1);
    }
}

static void a_link_at_the_place_of_results_is_not_followed(void **state)
{
    assert_true(shell_replaces_link(RINGLIMIT "line --json"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_measured_without_names),
        cmocka_unit_test(names_choose),
        cmocka_unit_test(json_has_a_line_a_size),
        cmocka_unit_test(a_push_has_a_line_a_payload),
        cmocka_unit_test(products_are_those_of_the_network),
        cmocka_unit_test(a_link_at_the_place_of_results_is_not_followed),
        cmocka_unit_test(wrong_words_are_refused),
        cmocka_unit_test(the_help_names_the_exit_codes),
        cmocka_unit_test(results_that_are_lost_are_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
