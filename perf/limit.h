/* SPDX-License-Identifier: Apache-2.0
 *
 * limit: measures the limits of this machine between two threads. Each measurement runs two bodies,
 * one per thread, on two cores if there are two; the stopwatch defines the method.
 */
#ifndef PERF_LIMIT_H
#define PERF_LIMIT_H

#include "sizes.h"
#include <stdatomic.h>

/** Cores that the two threads of a measurement are kept on. */
typedef struct limit_cores {
    int first, second;
} limit_cores;

/** @return two different cores that this process may use, or one twice. */
limit_cores limit_find_cores(void);

/** Runs body(0, arg) and body(1, arg), each on its core. @return false, after a line on stderr,
 *  if a thread could not be started; neither has run then. */
bool limit_run_pair(void (*body)(int side, void *arg), void *arg, limit_cores cores);

/** A spinning barrier of two: each side counts its arrivals in a cache line of its own. */
typedef struct limit_meeting {
    _Alignas(128) atomic_uint first;
    _Alignas(128) atomic_uint second;
} limit_meeting;

void limit_meet(limit_meeting *meeting, int side);

/** Spins until @p word, a counter that the other side advances, has reached @p value. */
void limit_wait(atomic_uint *word, unsigned value);

/** Median microseconds of @p iters calls after @p warmup, the slower side's each. A negative
 *  result is a failure, reported on stderr. */
double limit_all_reduce(size_t bytes, int iters, int warmup, bool aliased, limit_cores cores);
double limit_tcp_stream(size_t bytes, int iters, int warmup, limit_cores cores);

/** Microseconds for one hand-over, or negative as above. */
double limit_line_handover(limit_cores cores);
double limit_futex_handover(limit_cores cores);

/** Microseconds for one meeting of two threads that each push a 64-byte line with a round number, a
 *  signature and @p bytes of floats to the other, check what came and add it; negative as above. */
enum { LIMIT_PUSH_LEAST = 8, LIMIT_PUSH_MOST = 40 };
double limit_push(size_t bytes, limit_cores cores);

#endif
