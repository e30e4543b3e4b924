/* SPDX-License-Identifier: Apache-2.0
 *
 * perf_options: parses the command line of a measurement. There is one row for each option, with
 * nccl-tests' letters and long names; the rows are also the help text. Options that libring has no
 * use for are accepted with the value that means "off" and are an error otherwise, never ignored.
 */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include "collective.h"
#include "names.h"
#include "sizes.h"

typedef enum perf_memory { PERF_SHARED, PERF_PLAIN, PERF_GPU } perf_memory;

/** Ranks of one process (-t times -g). */
#define PERF_MOST_THREADS 1024

/** Of perf_options.gpu. */
enum { PERF_NO_GPU = -2, PERF_GPUS_IN_TURN = -1 };

/** How the ranks' times of one call become one time (-a). */
typedef enum perf_average {
    PERF_AVERAGE_DEFAULT = -1, /* slowest rank; with --hot the mean, as nccl-tests */
    PERF_RANK0 = 0,
    PERF_MEAN = 1,
    PERF_FASTEST = 2,
    PERF_SLOWEST = 3
} perf_average;

typedef struct perf_options {
    const perf_collective *collective;
    int threads, ngpus; /* ranks of this process: their product */
    int gpu;            /* the GPU that holds the buffers, or one of the above */
    perf_sizes sizes;
    int iters, agg_iters, warmup_iters, cycles, check;
    bool iters_given;
    int dtype, op, root;                  /* PERF_ALL: each in turn */
    int blocking, average, parallel_init; /* -1: not given */
    double timeout;                       /* seconds a call, 0: the library's */
    int per_iter, per_iter_skip, timestamps, memory_report, unalign;
    int off; /* accepted at one value only */
    perf_memory memory;
    bool memory_given;
    bool hot;
    bool stream;          /* calls are enqueued on a stream */
    int graph;            /* replays of a graph of the calls; 0: without a graph */
    bool prepared;        /* calls are started from a prepared one */
    bool tagged;          /* calls meet by tag */
    const char *json;     /* file, NULL: none */
    double min_bandwidth; /* from the environment; -1: none */
} perf_options;

/** @return the collective of a word of the command line; an unknown one ends the program with 2 and
 *  the nearest name. */
const perf_collective *perf_collective_given(const char *word);

/** Reads COLLECTIVE and options, then the environment's RINGPERF_MIN_BW (or NCCL_TESTS_MIN_BW).
 *  Ends the program with 2 for wrong ones, and after --help. */
void perf_options_parse(int argc, char **argv, perf_options *out);

#endif
