/* SPDX-License-Identifier: Apache-2.0
 * clock: reads the monotonic clock, which never moves backwards, as seconds in a double. */
#ifndef TRAIN_CLOCK_H
#define TRAIN_CLOCK_H

#include <time.h>

/** @return seconds since a fixed point in time. */
static inline double train_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
