/* SPDX-License-Identifier: Apache-2.0
 *
 * limit: measures the limits of this machine between two threads. Each measurement runs a function
 * in two threads, on two cores if the process may use two. The times are taken as stopwatch.h
 * defines.
 */
#ifndef PERF_LIMIT_H
#define PERF_LIMIT_H

#include "sizes.h"
#include <stdatomic.h>

/** The cores that the two threads of a measurement are bound to. */
typedef struct limit_cores {
    int first, second;
} limit_cores;

/** @return two different cores that this process may use; if it may use only one, that core
 *  twice. */
limit_cores limit_find_cores(void);

/** Runs body(0, arg) and body(1, arg), each on its core, and waits for both. @return false if a
 *  thread cannot be started; the reason is on stderr, and no body has run. */
bool limit_run_pair(void (*body)(int side, void *arg), void *arg, limit_cores cores);

/** A spinning barrier of two threads. Each side counts its arrivals in its own cache line. */
typedef struct limit_meeting {
    _Alignas(128) atomic_uint first;
    _Alignas(128) atomic_uint second;
} limit_meeting;

/** Waits until the other side has arrived as often as this side. @param side  0 or 1 */
void limit_meet(limit_meeting *meeting, int side);

/** Spins until @p word, a counter that the other side advances, has reached @p value. */
void limit_wait(atomic_uint *word, unsigned value);

/** @return the median time of @p iters calls, in microseconds, after @p warmup calls. The time of a
 *  call is that of the slower side. A negative number is a failure, whose reason is on stderr. */
double limit_all_reduce(size_t bytes, int iters, int warmup, bool aliased, limit_cores cores);
double limit_tcp_stream(size_t bytes, int iters, int warmup, limit_cores cores);

/** @return the microseconds of one hand-over; negative after a failure, as above. */
double limit_line_handover(limit_cores cores);
double limit_futex_handover(limit_cores cores);

enum { LIMIT_PUSH_LEAST = 8, LIMIT_PUSH_MOST = 40 };

/** Measures a meeting of two threads. Each thread pushes a 64-byte line with a round number, a
 *  signature and @p bytes of floats to the other thread, which checks the line and adds the floats.
 *  @return the microseconds of one meeting; negative after a failure, as above. */
double limit_push(size_t bytes, limit_cores cores);

#endif
