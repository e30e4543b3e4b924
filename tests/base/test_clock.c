/* SPDX-License-Identifier: Apache-2.0
 * The clock, sleeping, time-outs for poll, and the polite wait. */
#include "base.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <cmocka.h>

static void the_clock_never_goes_back(void **state)
{
    (void)state;
    double last = clock_now();
    for (int i = 0; i < 100000; i++) {
        const double now = clock_now();
        assert_true(now >= last);
        last = now;
    }
}

static void sleep_lasts_at_least_as_long_as_asked(void **state)
{
    (void)state;
    const double start = clock_now();
    clock_sleep(0.02);
    assert_true(clock_now() - start >= 0.02);
}

static void sleeping_no_time_returns(void **state)
{
    (void)state;
    const double start = clock_now();
    clock_sleep(0);
    clock_sleep(-1);
    clock_sleep((double)NAN);
    assert_true(clock_now() - start < 1);
}

static void on_alarm(int signal)
{
    (void)signal;
}

static void sleep_goes_on_after_a_signal(void **state)
{
    (void)state;
    const struct sigaction quiet = {.sa_handler = on_alarm};
    const struct itimerval often = {.it_interval.tv_usec = 1000, .it_value.tv_usec = 1000};
    const struct itimerval never = {.it_interval.tv_usec = 0};
    sigaction(SIGALRM, &quiet, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    const double start = clock_now();
    clock_sleep(0.05);
    const double slept = clock_now() - start;
    setitimer(ITIMER_REAL, &never, NULL);
    assert_true(slept >= 0.05);
}

static void time_left_is_rounded_up_and_bounded(void **state)
{
    (void)state;
    const double now = clock_now();
    assert_int_equal(clock_ms_until(now - 5, 100), 0);
    assert_int_equal(clock_ms_until(now + 1000, 100), 100);
    assert_int_equal(clock_ms_until((double)INFINITY, 100), 100);
    assert_in_range(clock_ms_until(now + 10, 60000), 9000, 10000);
    assert_in_range(clock_ms_until(clock_now() + 0.0005, 100), 0, 1);
}

static void a_polite_wait_ends_in_sleep_and_starts_again_at_zero(void **state)
{
    (void)state;
    unsigned turns = 0;
    while (!wait_politely(&turns))
        assert_true(turns < 1000000);
    assert_true(wait_politely(&turns));
    turns = 0;
    assert_false(wait_politely(&turns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_never_goes_back),
        cmocka_unit_test(sleep_lasts_at_least_as_long_as_asked),
        cmocka_unit_test(sleeping_no_time_returns),
        cmocka_unit_test(sleep_goes_on_after_a_signal),
        cmocka_unit_test(time_left_is_rounded_up_and_bounded),
        cmocka_unit_test(a_polite_wait_ends_in_sleep_and_starts_again_at_zero),
    };
    return cmocka_run_group_tests_name("base.clock", tests, NULL, NULL);
}
