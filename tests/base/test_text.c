/* SPDX-License-Identifier: Apache-2.0
 * Formatting. */
#include "base.h"

#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

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
        cmocka_unit_test(format_tells_whether_all_fitted),
    };
    return cmocka_run_group_tests_name("base.text", tests, NULL, NULL);
}
