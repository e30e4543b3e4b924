/* SPDX-License-Identifier: Apache-2.0
 * The clock, sleeping, time-outs for poll, and the polite wait. */
#include "base.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "unit_test.h"

/* ---- A machine on which yielding takes as long as the test says ------------------------------ */

static bool pretends;
static double moment, yield_takes;
static int yields;

#define INSTEAD_OF_LIBC __attribute__((visibility("default")))

INSTEAD_OF_LIBC int clock_gettime(clockid_t which, struct timespec *now)
{
    int (*real)(clockid_t, struct timespec *);
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    if (!pretends)
        return real(which, now);
    now->tv_sec = (time_t)moment;
    now->tv_nsec = (long)((moment - (double)now->tv_sec) * 1e9);
    return 0;
}

INSTEAD_OF_LIBC int sched_yield(void)
{
    yields++;
    moment += yield_takes;
    return 0;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void the_clock_never_goes_back(void **state)
{
    double last = clock_now();
    for (int i = 0; i < 100000; i++) {
        const double now = clock_now();
        assert_true(now >= last);
        last = now;
    }
}

static void sleep_lasts_at_least_as_long_as_asked(void **state)
{
    const double start = clock_now();
    clock_sleep(0.02);
    assert_true(clock_now() - start >= 0.02);
}

static void sleeping_no_time_returns(void **state)
{
    const double start = clock_now();
    clock_sleep(0);
    clock_sleep(-1);
    clock_sleep((double)NAN);
    assert_true(clock_now() - start < 1);
}

static void on_alarm(int signal)
{
}

static void sleep_goes_on_after_a_signal(void **state)
{
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
    const double now = clock_now();
    assert_int_equal(clock_ms_until(now - 5, 100), 0);
    assert_int_equal(clock_ms_until(now + 1000, 100), 100);
    assert_int_equal(clock_ms_until((double)INFINITY, 100), 100);
    assert_in_range(clock_ms_until(now + 10, 60000), 9000, 10000);
    assert_in_range(clock_ms_until(clock_now() + 0.0005, 100), 0, 1);
}

static void a_polite_wait_ends_in_sleep_and_starts_again_at_zero(void **state)
{
    unsigned turns = 0, steps = 0;
    pretends = true; /* a real long yield would change the next waits of this thread */
    while (!wait_politely(&turns, false) && steps < 1000000)
        steps++;
    const bool stays_asleep = wait_politely(&turns, false);
    turns = 0;
    const bool starts_asleep = wait_politely(&turns, false);
    pretends = false;
    assert_in_range(steps, 1, 10000);
    assert_true(stays_asleep);
    assert_false(starts_asleep);
}

/* @return yields before it is time to sleep. */
static int yields_of_a_wait(double seconds, bool crowded)
{
    unsigned turns = 0;
    yield_takes = seconds;
    yields = 0;
    while (!wait_politely(&turns, crowded))
        continue;
    assert_true(wait_is_sleepy(turns));
    return yields;
}

static void where_yields_take_long_a_wait_sleeps_instead(void **state)
{
    int long_ones = 0, until_short = 0;
    pretends = true;
    const int usual = yields_of_a_wait(1e-5, false);
    for (int i = 0; i < 1000; i++)
        long_ones += yields_of_a_wait(4e-3, false);
    const int crowded = yields_of_a_wait(4e-3, true);
    while (yields_of_a_wait(1e-5, false) == 0)
        until_short++;
    pretends = false;
    assert_in_range(usual, 1000, 10000);
    assert_in_range(crowded, usual, usual + 8); /* it begins to yield earlier */
    assert_in_range(long_ones, 1, 50);
    assert_in_range(until_short, 0, 100);
}

static void in_a_crowd_a_wait_yields_at_its_second_look(void **state)
{
    unsigned turns = 0;
    pretends = true;
    yields = 0;
    (void)wait_politely(&turns, true);
    const int at_first = yields;
    (void)wait_politely(&turns, true);
    const int at_second = yields;
    pretends = false;
    assert_int_equal(at_first, 0);
    assert_int_equal(at_second, 1);
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
        cmocka_unit_test(where_yields_take_long_a_wait_sleeps_instead),
        cmocka_unit_test(in_a_crowd_a_wait_yields_at_its_second_look),
    };
    return cmocka_run_group_tests_name("base.clock", tests, NULL, NULL);
}
