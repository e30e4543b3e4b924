/* SPDX-License-Identifier: Apache-2.0
 * The exit status of a cmocka program. cmocka returns the number of failures, and nothing of skips:
 * 77 failures would be a skip to ctest, and a group that was skipped as a whole a success. The
 * linker leads the calls of all tests here (ring_test()).
 */

#include "unit_test.h"

enum { FAILED = 1, SKIPPED = 77 };

void __real__skip(const char *file, int line);
int __real__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count,
                                   CMFixtureFunction set_up, CMFixtureFunction tear_down);
void __wrap__skip(const char *file, int line);
int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count,
                                   CMFixtureFunction set_up, CMFixtureFunction tear_down);

static size_t skipped; /* cases, each of which ends with it */

void __wrap__skip(const char *file, int line)
{
    skipped++;
    __real__skip(file, line);
}

int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count,
                                   CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    skipped = 0;
    if (__real__cmocka_run_group_tests(name, tests, count, set_up, tear_down) != 0)
        return FAILED;
    return skipped == count ? SKIPPED : 0;
}
