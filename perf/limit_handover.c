/* SPDX-License-Identifier: Apache-2.0
 *
 * limit_handover: the time from one thread's store to the other's next step: by a cache line
 * that the other one watches, and by a futex that it sleeps on. Medians, so that a moment of
 * other load does not count.
 */
#include "limit.h"
#include "stopwatch.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

#define SAMPLES 201
#define LINE_ROUNDS 2000   /* meetings a sample: one is too short for the clock */
#define ASLEEP_AFTER_US 50 /* a thread that began to wait this long ago sleeps in the kernel */

typedef struct exchange {
    limit_meeting meeting;
    _Alignas(128) atomic_uint word;
    double woken_at;
    double times[SAMPLES]; /* of one hand-over */
} exchange;

static void line_side(int side, void *arg)
{
    exchange *e = arg;
    for (int sample = 0; sample < SAMPLES; sample++) {
        limit_meet(&e->meeting, side);
        const double start = stopwatch_us();
        for (int i = 0; i < LINE_ROUNDS; i++)
            limit_meet(&e->meeting, side);
        if (side == 0)
            e->times[sample] = (stopwatch_us() - start) / LINE_ROUNDS;
    }
}

static void wake_sleeper(exchange *e, unsigned value)
{
    const double begin = stopwatch_us();
    while (stopwatch_us() - begin < ASLEEP_AFTER_US)
        sched_yield();
    e->woken_at = stopwatch_us();
    atomic_store(&e->word, value);
    syscall(SYS_futex, &e->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static double sleep_until(exchange *e, unsigned value)
{
    while (atomic_load(&e->word) != value)
        syscall(SYS_futex, &e->word, FUTEX_WAIT_PRIVATE, value - 1, NULL, NULL, 0);
    return stopwatch_us() - e->woken_at;
}

static void futex_side(int side, void *arg)
{
    exchange *e = arg;
    for (unsigned sample = 0; sample < SAMPLES; sample++) {
        limit_meet(&e->meeting, side);
        if (side == 0)
            wake_sleeper(e, sample + 1);
        else
            e->times[sample] = sleep_until(e, sample + 1);
    }
}

static double median_handover(void (*body)(int side, void *arg), limit_cores cores)
{
    exchange e = {0};
    return limit_run_pair(body, &e, cores) ? stopwatch_median(e.times, SAMPLES) : -1;
}

double limit_line_handover(limit_cores cores)
{
    return median_handover(line_side, cores);
}

double limit_futex_handover(limit_cores cores)
{
    return median_handover(futex_side, cores);
}
