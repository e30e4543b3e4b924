/* SPDX-License-Identifier: Apache-2.0
 * The clock and the polite wait. */
#include "base.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <time.h>

/* Measured on 2 cores: spinning longer than a few tens of looks before yielding costs a
 * time slice whenever there are more ranks than cores; yielding is cheap when alone. */
enum { SPIN_LOOKS = 8, CROWDED_LOOKS = 1, YIELD_LOOKS = 2000 };
/* A yield that takes so long gave the core to a thread that uses its time slice. */
static const double long_yield = 0.5e-3;
/* Then so many of them are left out, before one shows whether it is still so. */
enum { YIELDS_LEFT_OUT = 64 };
/* A wait looks so often instead, some tenths of a millisecond at most. */
enum { LOOKS_INSTEAD = 500 };

static _Thread_local int left_out;

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
    left_out = YIELDS_LEFT_OUT;
    return false;
}

bool clock_yield(void)
{
    if (left_out == 0)
        return yield_is_quick();
    left_out--;
    return false;
}

bool wait_is_sleepy(unsigned looks)
{
    return looks >= SPIN_LOOKS + YIELD_LOOKS;
}

/* Of a wait that ends in sleep all yields count as one that is left out. */
static void look_instead(unsigned *looks)
{
    cpu_pause();
    *looks += YIELD_LOOKS / LOOKS_INSTEAD - 1;
    left_out -= wait_is_sleepy(*looks);
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
    else if (left_out > 0)
        look_instead(looks);
    else if (!yield_is_quick())
        *looks = SPIN_LOOKS + YIELD_LOOKS;
    return false;
}
