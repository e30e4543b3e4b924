/* SPDX-License-Identifier: Apache-2.0
 * Formatting. */
#include "base.h"

#include <string.h>

#include "unit_test.h"

static void format_tells_whether_all_fitted(void **state)
{
    char out[6];
    assert_true(text_format(out, sizeof out, "%d", 12345));
    assert_string_equal(out, "12345");
    assert_false(text_format(out, sizeof out, "%d", 123456));
    assert_int_equal(strlen(out), 5);
}

static void text_is_appended_as_far_as_it_fits(void **state)
{
    char out[6] = "";
    assert_true(text_append(out, sizeof out, "%d", 12));
    assert_true(text_append(out, sizeof out, "%s", "345"));
    assert_string_equal(out, "12345");
    assert_false(text_append(out, sizeof out, "%d", 6));
    assert_string_equal(out, "12345");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(format_tells_whether_all_fitted),
        cmocka_unit_test(text_is_appended_as_far_as_it_fits),
    };
    return cmocka_run_group_tests_name("base.text", tests, NULL, NULL);
}
