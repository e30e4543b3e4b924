/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the clock and the polite wait. A wait spins briefly, then yields its core, and gives
 * up yielding when that gives the core to a thread that keeps it for a whole time slice.
 */
#include "base.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <time.h>

/* Numbers of steps. Measured on 2 cores: spinning longer than a few tens of steps before yielding
 * costs a time slice whenever there are more ranks than cores, and yields are cheap on a free core.
 */
enum { SPIN_LOOKS = 8, CROWDED_LOOKS = 1, YIELD_LOOKS = 2000 };
/* A yield that takes longer gave the core to a thread that uses its time slice. */
static const double long_yield = 0.5e-3;
/* After a long yield this many are skipped, before another one shows whether that has changed. */
enum { YIELDS_SKIPPED = 64 };
/* A wait that skips its yields spins for this many steps, for some tenths of a millisecond. */
enum { LOOKS_INSTEAD = 500 };

static _Thread_local int to_skip;

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

bool wait_is_sleepy(unsigned looks)
{
    return looks >= SPIN_LOOKS + YIELD_LOOKS;
}

/* Spins once in place of a yield. All yields of a wait that ends in sleep count as one. */
static void spin_instead(unsigned *looks)
{
    cpu_pause();
    *looks += YIELD_LOOKS / LOOKS_INSTEAD - 1;
    to_skip -= wait_is_sleepy(*looks);
}

bool wait_politely(unsigned *looks, bool crowded)
{
    const unsigned look = (*looks)++;
    if (look < (crowded ? CROWDED_LOOKS : SPIN_LOOKS))
        cpu_pause();
    else if (look >= SPIN_LOOKS + YIELD_LOOKS)
        return true;
    else if (crowded)
        sched_yield();
    else if (to_skip > 0)
        spin_instead(looks);
    else if (!yield_is_quick())
        *looks = SPIN_LOOKS + YIELD_LOOKS;
    return false;
}
