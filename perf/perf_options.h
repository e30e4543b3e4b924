/* SPDX-License-Identifier: Apache-2.0
 *
 * perf_options: parses the command line of a measurement. Each option has a table row with
 * nccl-tests' letter and long name, which is also its help text. Options that ringperf has no use
 * for are accepted with the value that means "off", and are an error with any other value.
 */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include "collective.h"
#include "names.h"
#include "sizes.h"

typedef enum perf_memory { PERF_SHARED, PERF_PLAIN, PERF_GPU } perf_memory;

/** Largest number of ranks of one process (-t times -g). */
#define PERF_MOST_THREADS 1024

/** Special values of perf_options.gpu. */
enum { PERF_NO_GPU = -2, PERF_GPUS_IN_TURN = -1 };

/** How the ranks' times of one call become one time (-a). */
typedef enum perf_average {
    PERF_AVERAGE_DEFAULT = -1, /* slowest rank; with --hot the mean, as in nccl-tests */
    PERF_RANK0 = 0,
    PERF_MEAN = 1,
    PERF_FASTEST = 2,
    PERF_SLOWEST = 3
} perf_average;

typedef struct perf_options {
    const perf_collective *collective;
    int threads, ngpus; /* their product is the number of ranks of this process */
    int gpu; /* number of the GPU that has the buffers, PERF_NO_GPU or PERF_GPUS_IN_TURN */
    perf_sizes sizes;
    int iters, agg_iters, warmup_iters, cycles, check;
    bool iters_given;
    int dtype, op, root;                  /* PERF_ALL: all values in turn */
    int blocking, average, parallel_init; /* -1: not given */
    double timeout;                       /* seconds per call; 0: the library's default */
    int per_iter, per_iter_skip, timestamps, memory_report, unalign;
    int off; /* value of the options that accept only 0 */
    perf_memory memory;
    bool memory_given;
    bool hot;
    bool stream;          /* calls are enqueued on a stream */
    int graph;            /* replays of a graph of the calls; 0: without a graph */
    bool prepared;        /* the call is prepared once and then started */
    bool tagged;          /* send and receive are matched by tag */
    const char *json;     /* name of the file; NULL: no file */
    double min_bandwidth; /* GB/s, from the environment; -1: no minimum */
} perf_options;

/** @return the collective with the name @p word. If it is unknown, prints the nearest name and ends
 *  the program with status 2. */
const perf_collective *perf_collective_given(const char *word);

/** Reads the collective and the options, and RINGPERF_MIN_BW (or NCCL_TESTS_MIN_BW) from the
 *  environment. Ends the program with status 2 if they are wrong, and with 0 after --help. */
void perf_options_parse(int argc, char **argv, perf_options *out);

#endif
