/* SPDX-License-Identifier: Apache-2.0
 * Compares a blocking all_reduce with one that the caller starts, and waits for after it has slept
 * or computed. Times are those of the slowest rank, and medians over the rounds. */
#include "overlap_command.h"

#include "args.h"
#include "bench.h"
#include "sizes.h"
#include "start.h"
#include "stopwatch.h"
#include "try.h"
#include "words.h"

#include <stdio.h>
#include <time.h>

enum { MOST_BUCKETS = 256, MOST_ROUNDS = 64 };

typedef struct overlap_options {
    perf_sizes sizes;
    int threads, buckets, rounds;
} overlap_options;

static const overlap_options defaults = {
    .sizes = {.min = 1 << 20, .max = 64 << 20, .factor = 4},
    .threads = 1,
    .buckets = 1,
    .rounds = 7,
};

#define FIELD(member) ARGS_AT(overlap_options, member)
static const args_row rows[] = {
    {"minbytes", 'b', "SIZE", "Smallest vector (default 1M)", args_size, FIELD(sizes.min),
     .least = 4},
    {"maxbytes", 'e', "SIZE", "Largest vector (default 64M)", args_size, FIELD(sizes.max),
     .least = 4},
    {"stepfactor", 'f', "N", "Multiply by N from one size to the next (default 4)", args_whole,
     FIELD(sizes.factor), .least = 2, .most = 1024},
    {"buckets", 'k', "N", "Calls into which a vector is divided (default 1)", args_whole,
     FIELD(buckets), .least = 1, .most = MOST_BUCKETS},
    {"rounds", 'n', "N", "Rounds, of which the medians are shown (default 7)", args_whole,
     FIELD(rounds), .least = 1, .most = MOST_ROUNDS},
    {"nthreads", 't', "N", "Ranks of each process, as threads (default 1)", args_whole,
     FIELD(threads), .least = 1, .most = PERF_MOST_THREADS},
    {0},
};

/** The measurement of one size and kind of memory on one rank. */
typedef struct overlap_run {
    const overlap_options *options;
    ring_comm *comm;
    float *vector;
    size_t count;                         /* elements of a bucket */
    double blocking, wait, compute, both; /* medians, microseconds */
} overlap_run;

/* ---- The caller's computation ---------------------------------------------------------- */

/* Keeps a core busy without accessing memory. A piece takes some microseconds. The sink is
 * volatile, so that the compiler does not drop the computation. */
static void compute(long pieces)
{
    static volatile double sink;
    double x = sink;
    for (long piece = 0; piece < pieces; piece++)
        for (int i = 0; i < 4000; i++)
            x = x * 0.999999 + 1e-6;
    sink = x;
}

/* ---- One round ------------------------------------------------------------------------------- */

static ring_status post(const overlap_run *r, ring_work **works)
{
    for (int k = 0; k < r->options->buckets; k++) {
        float *at = r->vector + (size_t)k * r->count;
        ring_call call = RING_CALL_INIT;
        call.work = &works[k];
        RING_TRY(ring_all_reduce(at, at, r->count, RING_FLOAT32, RING_MAX, r->comm, &call));
    }
    return RING_OK;
}

static ring_status block(const overlap_run *r)
{
    for (int k = 0; k < r->options->buckets; k++) {
        float *at = r->vector + (size_t)k * r->count;
        RING_TRY(ring_all_reduce(at, at, r->count, RING_FLOAT32, RING_MAX, r->comm, NULL));
    }
    return RING_OK;
}

/* Replaces the time by that of the slowest rank. */
static ring_status slowest(const overlap_run *r, double *us)
{
    return ring_all_reduce(us, us, 1, RING_FLOAT64, RING_MAX, r->comm, NULL);
}

static ring_status time_blocking(const overlap_run *r, double *us)
{
    RING_TRY(ring_barrier(r->comm, NULL));
    const double began = stopwatch_us();
    RING_TRY(block(r));
    *us = stopwatch_us() - began;
    return slowest(r, us);
}

/* Sleeps for three times the time of the blocking call, then times the wait. */
static ring_status time_wait(const overlap_run *r, double *us)
{
    const double sleep_us = 3 * r->blocking;
    const struct timespec sleep_time = {.tv_sec = (time_t)(sleep_us * 1e-6),
                                        .tv_nsec = (long)(sleep_us * 1e3) % 1000000000};
    ring_work *works[MOST_BUCKETS];
    RING_TRY(ring_barrier(r->comm, NULL));
    RING_TRY(post(r, works));
    nanosleep(&sleep_time, NULL);
    const double began = stopwatch_us();
    RING_TRY(ring_wait_all(works, (size_t)r->options->buckets));
    *us = stopwatch_us() - began;
    return slowest(r, us);
}

static ring_status time_compute(const overlap_run *r, long pieces, double *us)
{
    RING_TRY(ring_barrier(r->comm, NULL));
    const double began = stopwatch_us();
    compute(pieces);
    *us = stopwatch_us() - began;
    return slowest(r, us);
}

static ring_status time_both(const overlap_run *r, long pieces, double *us)
{
    ring_work *works[MOST_BUCKETS];
    RING_TRY(ring_barrier(r->comm, NULL));
    const double began = stopwatch_us();
    RING_TRY(post(r, works));
    compute(pieces);
    RING_TRY(ring_wait_all(works, (size_t)r->options->buckets));
    *us = stopwatch_us() - began;
    return slowest(r, us);
}

/* ---- All rounds ------------------------------------------------------------------------------ */

static ring_status measure(overlap_run *r)
{
    const size_t rounds = (size_t)r->options->rounds;
    double times[4][MOST_ROUNDS], tried_us;
    enum { TRIED = 200 };
    RING_TRY(block(r)); /* opens links and makes the program */
    for (size_t i = 0; i < rounds; i++)
        RING_TRY(time_blocking(r, &times[0][i]));
    r->blocking = stopwatch_median(times[0], rounds);
    /* So many pieces take about as long as the blocking call. All ranks have the same number. */
    RING_TRY(time_compute(r, TRIED, &tried_us));
    const long pieces = 1 + (long)(TRIED * r->blocking / tried_us);
    for (size_t i = 0; i < rounds; i++) {
        RING_TRY(time_blocking(r, &times[0][i]));
        RING_TRY(time_wait(r, &times[1][i]));
        RING_TRY(time_compute(r, pieces, &times[2][i]));
        RING_TRY(time_both(r, pieces, &times[3][i]));
    }
    r->blocking = stopwatch_median(times[0], rounds);
    r->wait = stopwatch_median(times[1], rounds);
    r->compute = stopwatch_median(times[2], rounds);
    r->both = stopwatch_median(times[3], rounds);
    return RING_OK;
}

static ring_status measure_memory(overlap_run *r, bool shared)
{
    const size_t bytes = r->count * sizeof(float) * (size_t)r->options->buckets;
    void *memory = NULL;
    if (shared)
        RING_TRY(ring_mem_alloc(&memory, bytes));
    else if ((memory = malloc(bytes)) == NULL)
        return ring_comm_abort(r->comm, "not enough memory for the vector"), RING_ERR_MEMORY;
    r->vector = memory;
    stopwatch_rewrite(r->vector, r->count * (size_t)r->options->buckets, 1);
    const ring_status status = measure(r);
    if (status == RING_OK && ring_comm_rank(r->comm) == 0) {
        printf("%12zu %8s %12.1f %12.1f %10.2f %12.1f %12.1f %10.2f\n", bytes,
               shared ? "shared" : "plain", r->blocking, r->wait, r->wait / r->blocking, r->compute,
               r->both, r->both / (r->compute + r->blocking));
        fflush(stdout);
    }
    if (shared)
        RING_TRY(ring_mem_free(memory));
    else
        free(memory);
    return status;
}

static ring_status measure_all(const overlap_options *options, ring_comm *comm)
{
    for (size_t bytes = options->sizes.min; bytes <= options->sizes.max;
         bytes = perf_sizes_next(&options->sizes, bytes)) {
        const size_t count = bytes / sizeof(float) / (size_t)options->buckets;
        overlap_run r = {.options = options, .comm = comm, .count = count > 0 ? count : 1};
        RING_TRY(measure_memory(&r, false));
        RING_TRY(measure_memory(&r, true));
    }
    return RING_OK;
}

static int overlap_rank(const void *options, ring_comm *comm)
{
    ring_comm_info info = {.size = sizeof info};
    ring_status status = ring_comm_get_info(comm, &info);
    if (status == RING_OK && info.rank == 0) {
        printf(
            "# all_reduce of float32, %d rank%s, %s; times in us; each rank computes on its core\n"
            "%12s %8s %12s %12s %10s %12s %12s %10s\n",
            info.ranks, plural(info.ranks), info.transport, "bytes", "memory", "blocking", "wait",
            "of block.", "compute", "with call", "of sum");
    }
    if (status == RING_OK)
        status = measure_all(options, comm);
    if (status == RING_OK)
        return PERF_EXIT_GOOD;
    fprintf(stderr, "ringperf: rank %d: %s\n", info.rank, ring_last_error(comm));
    return PERF_EXIT_ERROR;
}

int overlap_command(int argc, char **argv)
{
    static const args_program program = {
        .name = "ringperf overlap",
        .rows = rows,
        .doc =
            "Measures how much of an all_reduce overlaps with other work of its caller. "
            "\"blocking\" is the time of a blocking call. \"wait\": the caller starts the call, "
            "sleeps three times as long, and then waits for the call; \"of block.\" is this wait "
            "as a fraction of \"blocking\". \"compute\" is the time of a computation of about "
            "the same length. \"with call\": the caller starts the call, computes, and then "
            "waits; \"of sum\" is this time as a fraction of \"compute\" plus \"blocking\". "
            "Ranks are started as for ringperf."};
    overlap_options options = defaults;
    args_parse(&program, argc, argv, &options);
    return launch_ranks(options.threads, NULL, overlap_rank, &options);
}
