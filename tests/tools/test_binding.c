/* SPDX-License-Identifier: Apache-2.0
 * Cores for ranks: a share each by default, and none where that would hold them back. */
#include "binding.h"

#include <stdlib.h>

#include "unit_test.h"

static int no_threads(void **state)
{
    for (size_t i = 0; i < BINDING_VARIABLES; i++)
        unsetenv(binding_variables[i]);
    return 0;
}

static core_range range_of(job *j, int ranks, int local, size_t cores)
{
    share s = {.local = true,
               .ranks = ranks,
               .slots = memory_grow(NULL, (size_t)ranks, sizeof(int))};
    for (int i = 0; i < ranks; i++)
        s.slots[i] = i;
    const core_range range = binding_of(j, &s, local, cores);
    share_free(&s);
    return range;
}

static void range_is(job *j, int ranks, int local, size_t cores, size_t first, size_t count)
{
    const core_range range = range_of(j, ranks, local, cores);
    assert_int_equal(range.count, count);
    if (count > 0)
        assert_int_equal(range.first, first);
}

static void ranks_share_the_cores(void **state)
{
    job j = {.binding = BIND_AUTO};
    range_is(&j, 2, 0, 2, 0, 1);
    range_is(&j, 2, 1, 2, 1, 1);
    range_is(&j, 3, 2, 4, 2, 1);
    range_is(&j, 2, 0, 64, 0, 32);
    range_is(&j, 2, 1, 64, 32, 32);
    range_is(&j, 3, 2, 8, 4, 2);
    range_is(&j, 1, 0, 2, 0, 0);
    range_is(&j, 1, 0, 64, 0, 0);
    range_is(&j, 3, 0, 2, 0, 0);
    range_is(&j, 2, 0, 0, 0, 0);
}

static void threads_must_fit_the_share(void **state)
{
    for (size_t i = 0; i < BINDING_VARIABLES; i++) {
        const char *name = binding_variables[i];
        job j = {.binding = BIND_AUTO};
        setenv(name, "4", 1);
        range_is(&j, 2, 1, 8, 4, 4);
        range_is(&j, 2, 1, 6, 0, 0);
        texts_add(&j.exports, "%s=1", name); /* an export is stronger */
        range_is(&j, 2, 1, 6, 3, 3);
        texts_free(&j.exports);
        texts_add(&j.exports, "%s=8", name);
        range_is(&j, 2, 1, 8, 0, 0);
        texts_free(&j.exports);
        unsetenv(name);
    }
}

static void an_order_is_obeyed(void **state)
{
    job core = {.binding = BIND_CORE}, none = {.binding = BIND_NONE};
    setenv("OMP_NUM_THREADS", "64", 1);
    range_is(&core, 3, 2, 8, 2, 1);
    range_is(&core, 3, 2, 2, 0, 1);
    range_is(&core, 1, 0, 2, 0, 1);
    range_is(&none, 2, 1, 2, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(ranks_share_the_cores, no_threads),
        cmocka_unit_test_setup(threads_must_fit_the_share, no_threads),
        cmocka_unit_test_setup(an_order_is_obeyed, no_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
