/* SPDX-License-Identifier: Apache-2.0
 * Groups that end in each way: test_ending.sh looks at the exit statuses. */
#include <string.h>

#include "unit_test.h"

static void passes(void **state)
{
}

static void is_skipped(void **state)
{
    skip();
}

static void fails(void **state)
{
    fail();
}

static int fails_to_set_up(void **state)
{
    return -1;
}

/* As many failures as would look like a skip. */
static int run_failures(void)
{
    struct CMUnitTest tests[77];
    for (int i = 0; i < 77; i++)
        tests[i] = (struct CMUnitTest)cmocka_unit_test(fails);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest skipped[] = {cmocka_unit_test(is_skipped),
                                         cmocka_unit_test(is_skipped)};
    const struct CMUnitTest some[] = {cmocka_unit_test(is_skipped), cmocka_unit_test(passes)};
    const struct CMUnitTest failing[] = {cmocka_unit_test(is_skipped), cmocka_unit_test(fails)};
    const char *which = argc == 2 ? argv[1] : "";
    if (strcmp(which, "skipped") == 0)
        return cmocka_run_group_tests(skipped, NULL, NULL);
    if (strcmp(which, "some") == 0)
        return cmocka_run_group_tests(some, NULL, NULL);
    if (strcmp(which, "failing") == 0)
        return cmocka_run_group_tests(failing, NULL, NULL);
    if (strcmp(which, "setup") == 0)
        return cmocka_run_group_tests(skipped, fails_to_set_up, NULL);
    return run_failures();
}
