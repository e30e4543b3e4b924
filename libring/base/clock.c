/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the clock and the polite wait. A wait spins briefly, then yields its core. When a
 * yield takes a whole time slice, another thread is busy on the core, and the wait stops yielding.
 */
#include "base.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <time.h>

/* The number of steps that spin (CROWDED_SPINS if there are more ranks than cores), and of the
 * steps that yield. Measured on 2 cores: when there are more ranks than cores, spinning for more
 * than a few tens of steps costs a time slice; and on a free core yields are cheap. */
enum { SPIN_STEPS = 8, CROWDED_SPINS = 1, YIELD_STEPS = 2000 };
/* s: a yield that takes longer gave the core to a thread that used up its time slice. */
static const double long_yield = 0.5e-3;
/* After a long yield this many yields are skipped before one is tried again. All skipped yields of
 * one wait count as one. */
enum { YIELDS_SKIPPED = 64 };
/* A wait that skips its yields makes this many steps that spin, some tenths of a millisecond. */
enum { STEPS_INSTEAD = 500 };

static _Thread_local int to_skip; /* yields that are still to be skipped */

double clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void clock_sleep(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)((seconds - floor(seconds)) * 1e9)};
    while (seconds > 0 && nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

int clock_ms_until(double deadline, int most_ms)
{
    const double left = (deadline - clock_now()) * 1e3;
    if (left <= 0)
        return 0;
    return left >= most_ms ? most_ms : (int)ceil(left);
}

static bool yield_is_quick(void)
{
    const double before = clock_now();
    sched_yield();
    if (clock_now() - before < long_yield)
        return true;
    to_skip = YIELDS_SKIPPED;
    return false;
}

bool clock_yield(void)
{
    if (to_skip == 0)
        return yield_is_quick();
    to_skip--;
    return false;
}

bool wait_is_sleepy(unsigned steps)
{
    return steps >= SPIN_STEPS + YIELD_STEPS;
}

bool wait_politely(unsigned *steps, bool crowded)
{
    const unsigned step = (*steps)++;
    if (step < (crowded ? CROWDED_SPINS : SPIN_STEPS)) {
        cpu_pause();
    } else if (step >= SPIN_STEPS + YIELD_STEPS) {
        return true;
    } else if (crowded) {
        sched_yield();
    } else if (to_skip > 0) {
        /* Spins once in place of several yields, and counts one skipped yield at the end of the
         * wait. */
        cpu_pause();
        *steps += YIELD_STEPS / STEPS_INSTEAD - 1;
        to_skip -= wait_is_sleepy(*steps);
    } else if (!yield_is_quick()) {
        *steps = SPIN_STEPS + YIELD_STEPS;
    }
    return false;
}
