/* SPDX-License-Identifier: Apache-2.0
 * The clock and the polite wait. */
#include "base.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <time.h>

/* Measured on 2 cores: spinning longer than a few tens of turns before yielding costs a
 * time slice whenever there are more ranks than cores; yielding is cheap when alone. */
enum { SPIN_TURNS = 8, YIELD_TURNS = 2000 };

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

bool wait_is_sleepy(unsigned turns)
{
    return turns >= SPIN_TURNS + YIELD_TURNS;
}

bool wait_politely(unsigned *turns)
{
    const unsigned turn = (*turns)++;
    if (turn < SPIN_TURNS)
        cpu_pause();
    else if (turn < SPIN_TURNS + YIELD_TURNS)
        sched_yield();
    else
        return true;
    return false;
}
