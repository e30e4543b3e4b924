/* SPDX-License-Identifier: Apache-2.0
 * Nearest words. */
#include "words.h"

#include <string.h>

#include "unit_test.h"

static void the_nearest_word_is_found_whatever_its_case(void **state)
{
    static const char *const words[] = {"learning_rate", "optimizer", "scheduler"};
    assert_string_equal(words_nearest("optimiser", words, 3), "optimizer");
    assert_string_equal(words_nearest("SCHEDULR", words, 3), "scheduler");
    assert_string_equal(words_nearest("lerning_rate", words, 3), "learning_rate");
}

static void no_word_is_near_when_all_are_far(void **state)
{
    static const char *const words[] = {"learning_rate", "optimizer"};
    char endless[500];
    memset(endless, 'o', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_null(words_nearest("zzz", words, 2));
    assert_null(words_nearest("", words, 2));
    assert_null(words_nearest("anything", words, 0));
    assert_null(words_nearest(endless, words, 2));
}

static void words_are_alike_but_for_case_and_what_joins_their_parts(void **state)
{
    assert_true(words_alike("all_reduce", "AllReduce"));
    assert_true(words_alike("all_reduce", "all-reduce_"));
    assert_true(words_alike("", "_"));
    assert_false(words_alike("all_reduce", "all_reduces"));
    assert_false(words_alike("all_reduce", "all"));
    assert_false(words_alike("", "a"));
}

static void a_noun_is_in_the_singular_after_one_alone(void **state)
{
    assert_string_equal(plural(1), "");
    assert_string_equal(plural(0), "s");
    assert_string_equal(plural(2), "s");
    assert_string_equal(plural(-1), "s");
    assert_string_equal(plural(1.5), "s");
    assert_string_equal(plural((double)((1ULL << 32) + 1)), "s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_word_is_found_whatever_its_case),
        cmocka_unit_test(no_word_is_near_when_all_are_far),
        cmocka_unit_test(words_are_alike_but_for_case_and_what_joins_their_parts),
        cmocka_unit_test(a_noun_is_in_the_singular_after_one_alone),
    };
    return cmocka_run_group_tests_name("util.words", tests, NULL, NULL);
}
