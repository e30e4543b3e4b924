/* SPDX-License-Identifier: Apache-2.0
 * The run of sizes. */
#include "sizes.h"

#include "unit_test.h"

static size_t count_sizes(perf_sizes sizes)
{
    size_t count = 0;
    for (size_t at = sizes.min; at <= sizes.max; at = perf_sizes_next(&sizes, at))
        count++;
    return count;
}

static void a_run_of_sizes_multiplies_or_adds(void **state)
{
    assert_int_equal(count_sizes((perf_sizes){8, 64 << 20, 1 << 20, 2}), 24);
    assert_int_equal(count_sizes((perf_sizes){0, 4 << 20, 1 << 20, 1}), 5);
    assert_int_equal(count_sizes((perf_sizes){64, 64, 1 << 20, 1}), 1);
}

static void a_run_of_sizes_ends_from_zero_and_at_the_largest(void **state)
{
    assert_int_equal(count_sizes((perf_sizes){0, 8, 1, 2}), 5); /* 0 1 2 4 8 */
    assert_int_equal(count_sizes((perf_sizes){1, SIZE_MAX - 1, 1, 2}), 64);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_of_sizes_multiplies_or_adds),
        cmocka_unit_test(a_run_of_sizes_ends_from_zero_and_at_the_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
