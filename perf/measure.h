/* SPDX-License-Identifier: Apache-2.0
 *
 * measure: times a collective, and checks its result. Before every call, each rank rewrites its
 * input and waits at a barrier; then it times its own call. The time of a call is that of its
 * slowest rank, and the result is the median over calls. With --hot the calls follow each other as
 * in nccl-tests, and the result is the mean. With --stream and --graph all calls are timed
 * together, from the first request to the end of the last call.
 */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "buffers.h"
#include "progress.h"

/** The state of one rank. */
typedef struct perf_rank {
    const perf_options *options;
    ring_comm *comm;
    int rank, ranks;
    bool gate;     /* ranks start together at a tick of their clock; see stopwatch_gate() */
    perf_gpu *gpu; /* NULL: the buffers are on the host */
    perf_buffers buffers;
    double *times;           /* [options->iters] microseconds */
    uint32_t repetition;     /* number of the next call, which determines its input */
    ring_prepared *prepared; /* the prepared call that is measured; NULL: calls are not prepared */
    progress progress;       /* the progress line, which only rank 0 prints */
} perf_rank;

/** The spread of the times of single calls. */
typedef struct perf_spread {
    double least, most, p99; /* microseconds; p99 is the 99th percentile */
    double cv;               /* coefficient of variation, percent */
} perf_spread;

typedef struct perf_result {
    bool measured; /* false: the collective cannot be called in place */
    bool checked;
    double time_us;
    double algbw, busbw; /* GB/s, 1 GB = 1e9 bytes */
    perf_wrong wrong;    /* of all ranks */
    perf_spread spread;
    double predicted_us; /* 0: the cost model has no time for this call on some rank */
    char transport[32], algorithm[32]; /* sendrecv has no algorithm */
} perf_result;

/** Measures and checks one case. @param[out] result  the same on every rank.
 *  @return RING_OK, or the first error. */
ring_status perf_measure(perf_rank *self, const perf_case *c, perf_result *result);

/** Sorts @p times. @return their spread. @param count  at least 1 */
perf_spread perf_spread_of(double *times, size_t count);

#endif
