/* SPDX-License-Identifier: Apache-2.0
 * Sizes, nearest words, formatting. */
#include "base.h"

#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

static void sizes_have_binary_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {
        {"0", 0}, {"8", 8}, {"64", 64}, {"2K", 2048}, {"2k", 2048}, {"1M", 1 << 20},
        {"1.5M", 3 << 19}, {"8G", (size_t)8 << 30}, {"1T", (size_t)1 << 40}, {"4KB", 4096},
        {"4KiB", 4096}, {"4kib", 4096}, {"0.5K", 512},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bytes = 12345;
        assert_true(text_parse_size(cases[i].text, &bytes));
        assert_int_equal(bytes, cases[i].bytes);
    }
}

static void wrong_sizes_are_refused_and_leave_the_result(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "", " 8", "-1", "+1", "K", "8X", "8MM", "8M ", "8 M", "1e300", "9999999999999999999999",
        "9000000T", "nan", "inf", ".5", "1..5", "8KiBx",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        size_t bytes = 12345;
        assert_false(text_parse_size(wrong[i], &bytes));
        assert_int_equal(bytes, 12345);
    }
}

static void the_nearest_word_is_found_whatever_its_case(void **state)
{
    (void)state;
    static const char *const words[] = {"learning_rate", "optimizer", "scheduler"};
    assert_string_equal(text_nearest("optimiser", words, 3), "optimizer");
    assert_string_equal(text_nearest("SCHEDULR", words, 3), "scheduler");
    assert_string_equal(text_nearest("lerning_rate", words, 3), "learning_rate");
}

static void no_word_is_near_when_all_are_far(void **state)
{
    (void)state;
    static const char *const words[] = {"learning_rate", "optimizer"};
    char endless[500];
    memset(endless, 'o', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_null(text_nearest("zzz", words, 2));
    assert_null(text_nearest("", words, 2));
    assert_null(text_nearest("anything", words, 0));
    assert_null(text_nearest(endless, words, 2));
}

static void format_tells_whether_all_fitted(void **state)
{
    (void)state;
    char out[6];
    assert_true(text_format(out, sizeof out, "%d", 12345));
    assert_string_equal(out, "12345");
    assert_false(text_format(out, sizeof out, "%d", 123456));
    assert_int_equal(strlen(out), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_have_binary_units),
        cmocka_unit_test(wrong_sizes_are_refused_and_leave_the_result),
        cmocka_unit_test(the_nearest_word_is_found_whatever_its_case),
        cmocka_unit_test(no_word_is_near_when_all_are_far),
        cmocka_unit_test(format_tells_whether_all_fitted),
    };
    return cmocka_run_group_tests_name("base.text", tests, NULL, NULL);
}
