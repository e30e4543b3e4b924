/* SPDX-License-Identifier: Apache-2.0
 *
 * stopwatch: how ringperf, ringlimit and the MPI peers measure, written once so that their
 * figures compare. A call's time is that of its slowest rank; a measurement is the median
 * over calls. The header needs nothing but libc: programs of compare/ are built outside this tree.
 */
#ifndef PERF_STOPWATCH_H
#define PERF_STOPWATCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define STOPWATCH_TICK_NS 4000 /* many times the ranks' spread after a barrier in shared memory */

static inline int64_t stopwatch_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

static inline double stopwatch_us(void)
{
    return (double)stopwatch_ns() * 1e-3;
}

/* Ranks leave a barrier a little apart, and the first one's wait for the last would count as time
 * of the call. So each waits for the next tick of the clock that the ranks of a host share: they
 * start together. A rank that leaves after a tick makes one call look long; the median drops it. */
static inline void stopwatch_gate(void)
{
    const int64_t start = (stopwatch_ns() / STOPWATCH_TICK_NS + 1) * STOPWATCH_TICK_NS;
    while (stopwatch_ns() < start)
        ;
}

/* Spinning for a tick helps only where every rank has a core and the same clock. */
static inline int stopwatch_gate_useful(int hosts, int local_ranks)
{
    return hosts == 1 && local_ranks <= sysconf(_SC_NPROCESSORS_ONLN);
}

static inline int stopwatch_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts @p times; the mean of the two middle ones where there are two. */
static inline double stopwatch_median(double *times, size_t count)
{
    qsort(times, count, sizeof *times, stopwatch_compare);
    return count % 2 ? times[count / 2] : 0.5 * (times[count / 2 - 1] + times[count / 2]);
}

/* Fills a rank's buffer before a call: small integers, exact in every sum. */
static inline void stopwatch_rewrite(float *buffer, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++)
        buffer[i] = (float)((i + seed) & 63);
}

#endif
