/* SPDX-License-Identifier: Apache-2.0
 *
 * stopwatch: measures times for ringperf, ringlimit and the programs of compare/, which all use the
 * same method so that their figures can be compared. The time of a call is that of its slowest
 * rank; a measurement is the median over calls. This header needs only libc, because the programs
 * of compare/ are built outside this source tree.
 */
#ifndef PERF_STOPWATCH_H
#define PERF_STOPWATCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Much longer than the time between the first and the last rank that leave a barrier in shared
 * memory. */
#define STOPWATCH_TICK_NS 4000

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

/* Waits for the next tick. Ranks leave a barrier at slightly different times, and the first rank's
 * wait for the last would count as time of the call. After this function the ranks of a host, which
 * share a clock, start together. If a tick falls between the ranks of one call, that call seems
 * long; the median over calls ignores it. */
static inline void stopwatch_gate(void)
{
    const int64_t start = (stopwatch_ns() / STOPWATCH_TICK_NS + 1) * STOPWATCH_TICK_NS;
    while (stopwatch_ns() < start)
        ;
}

/* @return 1 if the ranks should wait for a tick: each has a core of its own, and all share a
 * clock. */
static inline int stopwatch_gate_useful(int hosts, int local_ranks)
{
    return hosts == 1 && local_ranks <= sysconf(_SC_NPROCESSORS_ONLN);
}

static inline int stopwatch_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts @p times. @return the median; for an even count, the mean of the two middle times. */
static inline double stopwatch_median(double *times, size_t count)
{
    qsort(times, count, sizeof *times, stopwatch_compare);
    return count % 2 ? times[count / 2] : 0.5 * (times[count / 2 - 1] + times[count / 2]);
}

/* Fills a rank's buffer before a call with small integers, whose sums are exact. */
static inline void stopwatch_rewrite(float *buffer, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++)
        buffer[i] = (float)((i + seed) & 63);
}

#endif
