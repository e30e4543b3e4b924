/* SPDX-License-Identifier: Apache-2.0
 * Nearest words, formatting. */
#include "base.h"

#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

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
        cmocka_unit_test(the_nearest_word_is_found_whatever_its_case),
        cmocka_unit_test(no_word_is_near_when_all_are_far),
        cmocka_unit_test(format_tells_whether_all_fitted),
    };
    return cmocka_run_group_tests_name("base.text", tests, NULL, NULL);
}
