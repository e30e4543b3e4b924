/* SPDX-License-Identifier: Apache-2.0
 *
 * one_test: a process runs one of its tests, by name, and so has a GPU of its own. cmocka.h comes
 * before it. */
#ifndef TESTS_KERNELS_ONE_TEST_H
#define TESTS_KERNELS_ONE_TEST_H

#include <stdio.h>
#include <string.h>

/** A row; CMake makes an entry of each. */
#define TEST(name) cmocka_unit_test(name)

/** @return what main() returns. */
static inline int run_one(const struct CMUnitTest *tests, size_t count, int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < count; i++)
        if (strcmp(tests[i].name, argv[1]) == 0) {
            const struct CMUnitTest chosen[] = {tests[i]};
            return cmocka_run_group_tests(chosen, NULL, NULL);
        }
    fprintf(stderr, "usage: %s TEST\n", argv[0]);
    return 2;
}

#endif
