/* SPDX-License-Identifier: Apache-2.0
 * The table: nccl-tests' columns first, the prediction last, and cells that never move. */
#include "result_table.h"

#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

static char *text;
static size_t text_size;

static FILE *begin(void)
{
    free(text);
    text = NULL;
    return open_memstream(&text, &text_size);
}

static perf_options make_options(const char *collective)
{
    return (perf_options){.collective = perf_collective_find(collective),
                          .threads = 1,
                          .ngpus = 1,
                          .sizes = {8, 64, 8, 2},
                          .iters = 20,
                          .agg_iters = 1,
                          .warmup_iters = 1,
                          .check = 1,
                          .average = PERF_AVERAGE_DEFAULT,
                          .parallel_init = -1,
                          .min_bandwidth = -1};
}

static perf_case make_case(const char *collective)
{
    return (perf_case){.collective = perf_collective_find(collective),
                       .dtype = RING_FLOAT32,
                       .op = RING_SUM,
                       .rank = 0,
                       .ranks = 2,
                       .count = 1024};
}

static perf_result make_result(double time)
{
    return (perf_result){.measured = true,
                         .checked = true,
                         .time_us = time,
                         .algbw = 1.5,
                         .busbw = 1.25,
                         .predicted_us = 12.5};
}

/* Splits the text's first line at blanks. @return the number of words. */
static size_t words_of(char *line, const char *words[], size_t most)
{
    size_t count = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *word = strtok(line, " "); word && count < most; word = strtok(NULL, " "))
        words[count++] = word;
    return count;
}

static size_t row_words(const perf_options *options, const perf_case *c, const perf_result *out,
                        const perf_result *in, const char *words[])
{
    FILE *file = begin();
    table_row(file, options, c, out, in);
    fclose(file);
    return words_of(text, words, 40);
}

static void a_row_has_the_columns_of_nccl_tests_and_the_prediction(void **state)
{
    const char *words[40];
    const perf_options options = make_options("all_reduce");
    const perf_case c = make_case("all_reduce");
    const perf_result out = make_result(10), in = make_result(20);
    assert_int_equal(row_words(&options, &c, &out, &in, words), 14);
    static const char *const wanted[] = {"4096", "1024", "float", "sum",  "-1",   "10.00", "1.50",
                                         "1.25", "0",    "20.00", "1.50", "1.25", "0",     "12.50"};
    for (size_t i = 0; i < 14; i++)
        assert_string_equal(words[i], wanted[i]);
}

static void collectives_without_op_or_with_root_say_so(void **state)
{
    const char *words[40];
    const perf_options options = make_options("broadcast");
    perf_case c = make_case("broadcast");
    const perf_result out = make_result(10);
    c.root = 1;
    row_words(&options, &c, &out, &out, words);
    assert_string_equal(words[3], "none");
    assert_string_equal(words[4], "1");
}

static void what_was_not_checked_or_measured_is_not_available(void **state)
{
    const char *words[40];
    const perf_options options = make_options("sendrecv");
    const perf_case c = make_case("sendrecv");
    perf_result out = make_result(10), in = {0};
    out.checked = false;
    assert_int_equal(row_words(&options, &c, &out, &in, words), 14);
    for (size_t i = 8; i < 13; i++)
        assert_string_equal(words[i], "N/A");
    assert_string_equal(words[5], "10.00");
    assert_string_equal(words[13], "12.50");
}

static void spread_and_timestamp_come_before_the_prediction(void **state)
{
    const char *words[40];
    perf_options options = make_options("all_reduce");
    const perf_case c = make_case("all_reduce");
    const perf_result out = make_result(10);
    options.per_iter = options.timestamps = 1;
    assert_int_equal(row_words(&options, &c, &out, &out, words), 14 + 8 + 2);
    assert_string_equal(words[23], "12.50");
}

/* Columns are found by place in scripts: however large a number is, the line keeps its length. */
static void huge_numbers_do_not_move_the_columns(void **state)
{
    const perf_options options = make_options("all_reduce");
    const perf_case c = make_case("all_reduce");
    static const double times[] = {0, 0.13, 99999.99, 123456.7, 1e7 + 0.5, 1e12, 1e100};
    size_t length = 0;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        perf_result result = make_result(times[i]);
        result.algbw = result.busbw = times[i];
        FILE *file = begin();
        table_row(file, &options, &c, &result, &result);
        fclose(file);
        assert_true(i == 0 || text_size == length);
        length = text_size;
    }
}

static void headers_are_as_wide_as_rows(void **state)
{
    for (int way = 0; way < 4; way++) {
        perf_options options = make_options("all_reduce");
        const perf_case c = make_case("all_reduce");
        const perf_result result = make_result(10);
        options.per_iter = way & 1;
        options.timestamps = way / 2;
        FILE *file = begin();
        table_columns(file, &options);
        table_row(file, &options, &c, &result, &result);
        fclose(file);
        const char *names = strstr(text, "size"), *units = strstr(text, "(B)");
        const char *row = strstr(units, "\n") + 1;
        assert_non_null(names);
        assert_int_equal(strcspn(names, "\n") + 8, strlen(row) - 1);
        assert_non_null(strstr(text, "predicted\n"));
        assert_non_null(strstr(text, "out-of-place"));
        assert_non_null(strstr(text, "in-place"));
    }
}

static void the_header_names_the_options(void **state)
{
    FILE *file = begin();
    const perf_options options = make_options("all_reduce");
    table_header(file, &options);
    fclose(file);
    assert_non_null(strstr(text, "# Collective test starting: all_reduce\n"));
    assert_non_null(
        strstr(text, "# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 1 "
                     "iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0\n"));
    assert_non_null(strstr(text, "# Using devices\n"));
}

static void what_changes_nothing_is_noted(void **state)
{
    perf_options options = make_options("all_gather");
    options.op = RING_MAX;
    options.root = 3;
    options.parallel_init = 1;
    options.blocking = 2;
    FILE *file = begin();
    table_header(file, &options);
    fclose(file);
    assert_non_null(strstr(text, "-o changes nothing"));
    assert_non_null(strstr(text, "-r changes nothing"));
    assert_non_null(strstr(text, "-p 1 changes nothing"));
    assert_non_null(strstr(text, "-z 2 changes nothing"));
}

static void the_footer_tells_good_and_bad(void **state)
{
    perf_options options = make_options("all_reduce");
    perf_totals totals = {.busbw = 6, .measurements = 4};
    FILE *file = begin();
    table_footer(file, &options, &totals);
    fclose(file);
    assert_non_null(strstr(text, "# Out of bounds values : 0 OK\n"));
    assert_non_null(strstr(text, "# Avg bus bandwidth    : 1.5 \n"));
    assert_non_null(strstr(text, "# Collective test concluded: all_reduce\n"));
    assert_true(perf_good(&options, &totals));
    totals.wrong.out_of_bounds = 3;
    options.min_bandwidth = 2;
    file = begin();
    table_footer(file, &options, &totals);
    fclose(file);
    assert_non_null(strstr(text, "# Out of bounds values : 3 FAILED\n"));
    assert_non_null(strstr(text, "# Avg bus bandwidth    : 1.5 FAILED\n"));
    assert_false(perf_good(&options, &totals));
}

/* Scripts look for "Out of bounds values : 0 OK"; nccl-tests never prints it with wrong values. */
static void the_footer_counts_wrong_elements_and_guard_bytes(void **state)
{
    const perf_options options = make_options("all_reduce");
    const perf_totals totals = {.busbw = 9,
                                .measurements = 1,
                                .wrong = {.elements = 4, .out_of_bounds = 3}};
    FILE *file = begin();
    table_footer(file, &options, &totals);
    fclose(file);
    assert_non_null(strstr(text, "# Out of bounds values : 7 FAILED\n"));
}

static void nine_tenths_of_the_least_bandwidth_are_enough(void **state)
{
    perf_options options = make_options("all_reduce");
    const perf_totals totals = {.busbw = 9, .measurements = 1};
    options.min_bandwidth = 9.99;
    assert_true(perf_good(&options, &totals));
    options.min_bandwidth = 10.01;
    assert_false(perf_good(&options, &totals));
}

static void wrong_values_are_not_good(void **state)
{
    const perf_options options = make_options("all_reduce");
    const perf_totals totals = {.busbw = 9, .measurements = 1, .wrong = {.elements = 1}};
    assert_false(perf_good(&options, &totals));
}

static void a_run_without_measurements_is_not_good(void **state)
{
    const perf_options options = make_options("all_reduce");
    const perf_totals totals = {0};
    assert_false(perf_good(&options, &totals));
}

static int free_text(void **state)
{
    free(text);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_has_the_columns_of_nccl_tests_and_the_prediction),
        cmocka_unit_test(collectives_without_op_or_with_root_say_so),
        cmocka_unit_test(what_was_not_checked_or_measured_is_not_available),
        cmocka_unit_test(spread_and_timestamp_come_before_the_prediction),
        cmocka_unit_test(huge_numbers_do_not_move_the_columns),
        cmocka_unit_test(headers_are_as_wide_as_rows),
        cmocka_unit_test(the_header_names_the_options),
        cmocka_unit_test(what_changes_nothing_is_noted),
        cmocka_unit_test(the_footer_tells_good_and_bad),
        cmocka_unit_test(the_footer_counts_wrong_elements_and_guard_bytes),
        cmocka_unit_test(nine_tenths_of_the_least_bandwidth_are_enough),
        cmocka_unit_test(wrong_values_are_not_good),
        cmocka_unit_test(a_run_without_measurements_is_not_good),
    };
    return cmocka_run_group_tests(tests, NULL, free_text);
}
