/* SPDX-License-Identifier: Apache-2.0
 * Implements the one lock, and the dice, the clock and the counters that it guards. */
#include "fake.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, let_in = PTHREAD_COND_INITIALIZER;
static _Atomic int waiting;
static bool lets_in; /* the adapter sleeps while threads wait for the lock */
static uint64_t dice;

fake_ibverbs_counts fake_counts;

void fake_lock(void)
{
    atomic_fetch_add(&waiting, 1);
    pthread_mutex_lock(&lock);
    atomic_fetch_sub(&waiting, 1);
}

void fake_unlock(void)
{
    if (lets_in && atomic_load(&waiting) == 0)
        pthread_cond_signal(&let_in);
    pthread_mutex_unlock(&lock);
}

static void wait_on(pthread_cond_t *condition, double until)
{
    const struct timespec at = {.tv_sec = (time_t)until,
                                .tv_nsec = (long)((until - (double)(time_t)until) * 1e9)};
    if (until > 0)
        pthread_cond_clockwait(condition, &lock, CLOCK_MONOTONIC, &at);
    else
        pthread_cond_wait(condition, &lock);
}

/* A mutex is not fair: the adapter would take it again before who waits is awake. Nor may many that
 * come again and again keep the adapter out. */
static void let_others_in(void)
{
    const double until = fake_now() + 1e-3;
    lets_in = true;
    while (atomic_load(&waiting) > 0 && fake_now() < until)
        wait_on(&let_in, until);
    lets_in = false;
}

/* Where there is one core only, pollers would never see a message half done. Where others share
 * the core each pause costs a time slice: then there are few. */
static void pause_now_and_then(void)
{
    static int left_out;
    if (fake_roll() % 32 != 0 || --left_out > 0)
        return;
    pthread_mutex_unlock(&lock);
    const double before = fake_now();
    sched_yield();
    const bool long_one = fake_now() - before > 0.5e-3;
    pthread_mutex_lock(&lock);
    left_out = long_one ? 64 : 0;
}

void fake_lock_yield(void)
{
    if (atomic_load(&waiting) > 0)
        let_others_in();
    else
        pause_now_and_then();
}

void fake_wait_for_work(double until)
{
    wait_on(&work, until);
}

void fake_tell_of_work(void)
{
    pthread_cond_signal(&work);
}

uint64_t fake_roll(void)
{
    if (dice == 0)
        dice = fake_settings_get()->seed;
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return dice;
}

double fake_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void fake_misuse(const char *what, const char *of)
{
    fprintf(stderr, "fake libibverbs: %s: %s\n", what, of);
    abort();
}

void fake_ibverbs_counters(fake_ibverbs_counts *out)
{
    fake_lock();
    *out = fake_counts;
    fake_unlock();
}

/* A child has no adapter, but may end what it inherited. */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void look_after_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}
