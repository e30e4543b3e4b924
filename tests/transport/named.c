/* SPDX-License-Identifier: Apache-2.0
 * Runs one named test under cmocka. */
#include "named.h"

#include <stdio.h>
#include <string.h>

#include "unit_test.h"

static void run_one(void **state)
{
    const named_test *test = *state;
    test->run();
}

int named_run(const named_test *tests, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(tests[i].name, name) != 0)
            continue;
        named_test chosen = tests[i];
        const struct CMUnitTest group[] = {{chosen.name, run_one, NULL, NULL, &chosen}};
        return cmocka_run_group_tests(group, NULL, NULL);
    }
    fprintf(stderr, "no such test: %s\n", name);
    return 2;
}
