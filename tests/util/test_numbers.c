/* SPDX-License-Identifier: Apache-2.0
 * Numbers are taken whole or not at all. */
#include "numbers.h"

#include "unit_test.h"

static void sizes_have_binary_units(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {{"0", 0},
                 {"8", 8},
                 {"1K", 1024},
                 {"1k", 1024},
                 {"1M", 1 << 20},
                 {"32M", 32 << 20},
                 {"1.5M", 3 << 19},
                 {"8G", (size_t)8 << 30},
                 {"2T", (size_t)2 << 40},
                 {"4KB", 4096},
                 {"4KiB", 4096},
                 {"1.5K", 1536},
                 {"8.0", 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bytes = 1;
        assert_true(number_size(cases[i].text, &bytes));
        assert_int_equal(bytes, cases[i].bytes);
    }
}

static void what_is_no_size_is_refused(void **state)
{
    static const char *const wrong[] = {"",     "M",         "-1",    "+1",    " 8",
                                        "8 ",   "8X",        "1MM",   "1e9K9", "nan",
                                        "inf",  "99999999T", "8KiBs", "8.9",   "1.0001K",
                                        "0x10", "0x1p4",     "1e3",   "1.2.3", ".5K"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        size_t bytes;
        assert_false(number_size(wrong[i], &bytes));
    }
}

static void whole_numbers_keep_their_bounds(void **state)
{
    long long value;
    assert_true(number_whole("1", 1, 4, &value));
    assert_int_equal(value, 1);
    assert_true(number_whole("-1", -1, 4, &value));
    assert_int_equal(value, -1);
    static const char *const wrong[] = {
        "0",  "5",  "",    "x",  "1x", "1.0", "99999999999999999999",
        " 1", "+1", "0x1", "1 ", "-",  "--1", "- 1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(number_whole(wrong[i], 1, 4, &value));
}

static void reals_are_finite_and_not_negative(void **state)
{
    double value;
    assert_true(number_real("2.5", &value));
    assert_true(value == 2.5);
    assert_true(number_real("1e3", &value));
    assert_true(value == 1000);
    assert_true(number_real(".5", &value));
    assert_true(value == 0.5);
    static const char *const wrong[] = {"", "-1", "nan", "inf", "1s", " 1", "+1", "0x10", "."};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(number_real(wrong[i], &value));
}

/* 36500 days, and the longest of Python's timedelta. */
static void timeouts_may_be_longer_than_lives(void **state)
{
    static const char *const good[] = {"0.01", "3153600000", "86399999999999", "1e14"};
    static const char *const wrong[] = {"0", "0.009", "1.1e14", "inf", "none", "soon"};
    double value;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(number_seconds(good[i], &value));
    assert_true(value == NUMBER_SECONDS_MOST);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(number_seconds(wrong[i], &value));
}

static void limits_may_be_none(void **state)
{
    static const char *const good[][2] = {{"none", "none"},
                                          {"None", "none"},
                                          {"1e14", "none"},
                                          {"2.50", "2.5"},
                                          {"99e12", "9.9e+13"}};
    static const char *const wrong[] = {"", "no", "none ", "nones", "inf", "-1"};
    char text[NUMBER_LIMIT_MAX];
    double value;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(number_limit(good[i][0], &value));
        assert_string_equal(number_limit_text(value, text), good[i][1]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(number_limit(wrong[i], &value));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_have_binary_units),
        cmocka_unit_test(what_is_no_size_is_refused),
        cmocka_unit_test(whole_numbers_keep_their_bounds),
        cmocka_unit_test(reals_are_finite_and_not_negative),
        cmocka_unit_test(timeouts_may_be_longer_than_lives),
        cmocka_unit_test(limits_may_be_none),
    };
    return cmocka_run_group_tests_name("util.numbers", tests, NULL, NULL);
}
