/* SPDX-License-Identifier: Apache-2.0
 * Median and spread of times. */
#include "measure.h"
#include "stopwatch.h"

#include <math.h>

#include "unit_test.h"

static void the_median_is_the_middle_one(void **state)
{
    double odd[] = {9, 1, 5}, even[] = {4, 1, 9, 2}, one[] = {7};
    assert_true(stopwatch_median(odd, 3) == 5);
    assert_true(stopwatch_median(even, 4) == 3);
    assert_true(stopwatch_median(one, 1) == 7);
}

static void an_outlier_does_not_move_the_median(void **state)
{
    double times[] = {1, 1, 1, 1, 1e9};
    assert_true(stopwatch_median(times, 5) == 1);
}

static void the_spread_tells_least_most_and_variation(void **state)
{
    double times[] = {4, 2, 4, 4, 5, 5, 7, 9};
    const perf_spread spread = perf_spread_of(times, 8);
    assert_true(spread.least == 2);
    assert_true(spread.most == 9);
    assert_true(spread.p99 == 9);
    assert_true(fabs(spread.cv - 40.0) < 1e-9);
}

static void the_99th_percentile_is_the_nearest_rank(void **state)
{
    double times[200];
    for (int i = 0; i < 200; i++)
        times[i] = 200 - i;
    assert_true(perf_spread_of(times, 200).p99 == 198);
}

static void ranks_start_together_after_the_gate(void **state)
{
    const int64_t before = stopwatch_ns();
    stopwatch_gate();
    const int64_t after = stopwatch_ns();
    assert_true(after / STOPWATCH_TICK_NS > before / STOPWATCH_TICK_NS);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_median_is_the_middle_one),
        cmocka_unit_test(an_outlier_does_not_move_the_median),
        cmocka_unit_test(the_spread_tells_least_most_and_variation),
        cmocka_unit_test(the_99th_percentile_is_the_nearest_rank),
        cmocka_unit_test(ranks_start_together_after_the_gate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
