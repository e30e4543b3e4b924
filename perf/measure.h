/* SPDX-License-Identifier: Apache-2.0
 *
 * measure: times a collective, and checks its result. Every call's input is rewritten by its rank,
 * the ranks meet, and each times its own call; a call counts with its slowest rank, a measurement
 * with the median of its calls. With --hot the calls follow each other as in nccl-tests, and the
 * mean counts; with --stream and --graph they are one measurement, from the first request to the
 * end of the last.
 */
#ifndef PERF_MEASURE_H
#define PERF_MEASURE_H

#include "buffers.h"
#include "progress.h"

/** One rank at work. */
typedef struct perf_rank {
    const perf_options *options;
    ring_comm *comm;
    int rank, ranks;
    bool gate;     /* ranks have a core each and one clock: start together */
    perf_gpu *gpu; /* NULL: the buffers are the host's memory */
    perf_buffers buffers;
    double *times; /* [options->iters] microseconds */
    uint32_t repetition;
    ring_prepared *prepared; /* the call that is measured; NULL: each call is set up again */
    progress progress;       /* on the terminal, by rank 0 alone */
} perf_rank;

/** Spread of the timed calls, microseconds; cv in percent. */
typedef struct perf_spread {
    double least, most, p99, cv;
} perf_spread;

typedef struct perf_result {
    bool measured; /* false: the collective cannot be called this way */
    bool checked;
    double time_us, algbw, busbw; /* GB/s, 1 GB = 1e9 bytes */
    perf_wrong wrong;             /* of all ranks */
    perf_spread spread;
    double predicted_us;               /* 0: the model has no time for this call, or for a rank */
    char transport[32], algorithm[32]; /* of a pair none */
} perf_result;

/** Measures and checks one case. @return the first error of the library; *result is the
 *  same on every rank. */
ring_status perf_measure(perf_rank *self, const perf_case *c, perf_result *result);

/** Sorts @p times. */
perf_spread perf_spread_of(double *times, size_t count);

#endif
