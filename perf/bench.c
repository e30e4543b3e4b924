/* SPDX-License-Identifier: Apache-2.0
 *
 * bench: measures all cases in the same order on all ranks. A rank that fails alone (for instance,
 * because it has no memory or cannot create a file) aborts the communicator, so that no other rank
 * waits for it.
 */
#include "bench.h"
#include "json.h"
#include "output.h"
#include "result_table.h"
#include "stopwatch.h"
#include "sysfs.h"
#include "try.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench {
    perf_options options; /* a copy, because memory may limit sizes.max */
    perf_rank self;
    perf_gpu gpu;
    perf_totals totals;
    ring_comm_info info;
    FILE *json;
    size_t *counts; /* [ranks] perf_case.counts */
    void **lists;   /* [2 * ranks] perf_case.lists */
    bool reported;  /* rank 0 has already printed the error */
} bench;

/* ---- Errors ---- */

/* Aborts the communicator because this rank has failed. The reason becomes the latest error of
 * every rank. */
static ring_status give_up(bench *b, ring_status status, const char *reason)
{
    ring_comm_abort(b->self.comm, reason);
    return status;
}

/* ---- The GPU ---- */

/* Makes a call on the GPU's stream, because it fails if the communicator does not use the GPU. In
 * that case, other calls would access GPU memory as if it were host memory. */
static ring_status try_gpu(bench *b)
{
    ring_call call = RING_CALL_INIT;
    call.stream = b->gpu.stream;
    if (ring_barrier(b->self.comm, &call) != RING_OK)
        return give_up(
            b, RING_ERR_UNSUPPORTED,
            "--device cuda: libring does not use this GPU; its warning states the reason");
    const ring_status status = perf_gpu_wait(&b->gpu);
    return status == RING_OK ? RING_OK : give_up(b, status, perf_gpu_error());
}

static ring_status open_gpu(bench *b)
{
    if (b->options.gpu == PERF_NO_GPU)
        return RING_OK;
    const ring_status status = perf_gpu_open(&b->gpu);
    if (status != RING_OK)
        return give_up(b, status, perf_gpu_error());
    b->self.gpu = &b->gpu;
    return try_gpu(b);
}

/* @return the bytes of GPU memory that each rank on the GPU may use. */
static size_t gpu_share(const bench *b)
{
    const int gpus = b->options.gpu == PERF_GPUS_IN_TURN ? perf_gpu_count() : 1;
    const int sharers = (b->info.local_ranks + gpus - 1) / (gpus > 0 ? gpus : 1);
    return b->gpu.memory / 10 * 9 / (size_t)sharers;
}

/* ---- Memory ---- */

/* @return the largest size for which two buffers of each local rank fit into nine tenths of the
 * available memory. Buffers on a GPU need as much memory of the host, too. */
static size_t size_that_fits(const bench *b)
{
    char kib[64];
    const bool known = sysfs_value(kib, sizeof kib, "MemAvailable:", "/proc/meminfo");
    const size_t available = known ? (size_t)strtoull(kib, NULL, 10) * 1024 : 0; /* 0: unknown */
    const size_t guards = (size_t)3 * PERF_GUARD;
    size_t share = available / 10 * 9 / (size_t)b->info.local_ranks / 2;
    if (b->self.gpu != NULL && gpu_share(b) / 2 < share)
        share = gpu_share(b) / 2;
    if (available == 0 || b->options.sizes.max < share)
        return b->options.sizes.max;
    return share > guards ? share - guards : 0;
}

/* All ranks have this failure, and rank 0 prints it. */
static ring_status too_large(bench *b, size_t fits)
{
    if (b->self.rank == 0)
        fprintf(stderr,
                "ringperf: nothing to measure: the memory allows two buffers of %zu bytes for each "
                "rank, but --minbytes is %zu; lower --minbytes, or start fewer ranks\n",
                fits, b->options.sizes.min);
    b->reported = true;
    return RING_ERR_MEMORY;
}

static ring_status limit_size(bench *b)
{
    uint64_t fits = size_that_fits(b);
    const size_t wanted = b->options.sizes.max;
    RING_TRY(ring_all_reduce(&fits, &fits, 1, RING_UINT64, RING_MIN, b->self.comm, NULL));
    if (fits < b->options.sizes.min)
        return too_large(b, (size_t)fits);
    b->options.sizes.max = (size_t)fits;
    if (b->self.rank == 0 && fits < wanted)
        printf("#\n# Reducing maxBytes to %zu due to memory limitation\n", (size_t)fits);
    return RING_OK;
}

static ring_status open_memory(bench *b)
{
    perf_rank *self = &b->self;
    RING_TRY(limit_size(b));
    self->times = calloc((size_t)b->options.iters, sizeof *self->times);
    b->counts = calloc((size_t)self->ranks, sizeof *b->counts);
    b->lists = calloc(2 * (size_t)self->ranks, sizeof *b->lists);
    if (!self->times || !b->counts || !b->lists)
        return give_up(b, RING_ERR_MEMORY, "not enough memory to store the times; lower --iters");
    const ring_status status = perf_buffers_open(&self->buffers, b->options.sizes.max,
                                                 b->options.memory, self->gpu);
    if (status != RING_OK)
        return give_up(b, status, "not enough memory for the buffers; lower --maxbytes");
    b->totals.buffer_bytes = 2 * (b->options.sizes.max + (size_t)3 * PERF_GUARD);
    return RING_OK;
}

/* ---- Header ---- */

static ring_status print_ranks(bench *b)
{
    char own[TABLE_RANK_LINE];
    const size_t ranks = (size_t)b->self.ranks;
    char *lines = calloc(ranks, TABLE_RANK_LINE);
    if (!lines)
        return give_up(b, RING_ERR_MEMORY, "not enough memory to print the header");
    table_rank_line(own, &b->info, b->self.gpu);
    const ring_status status = ring_all_gather(own, lines, TABLE_RANK_LINE, RING_UINT8,
                                               b->self.comm, NULL);
    for (size_t i = 0; status == RING_OK && b->self.rank == 0 && i < ranks; i++)
        printf("%.*s", TABLE_RANK_LINE, lines + i * TABLE_RANK_LINE);
    free(lines);
    return status;
}

static ring_status open_json(bench *b)
{
    char reason[512];
    if (b->self.rank != 0 || !b->options.json)
        return RING_OK;
    b->json = output_open(b->options.json);
    if (b->json)
        return RING_OK;
    snprintf(reason, sizeof reason, "--json %s: %s", b->options.json, strerror(errno));
    return give_up(b, RING_ERR_SYSTEM, reason);
}

/* ---- Cases ---- */

static ring_status measure_place(bench *b, perf_case c, bool in_place, perf_result *result)
{
    c.in_place = in_place;
    RING_TRY(perf_measure(&b->self, &c, result));
    if (!result->measured)
        return RING_OK;
    b->totals.busbw += result->busbw;
    b->totals.measurements++;
    b->totals.crowded |= result->predicted_us == 0 && !c.collective->pair && b->self.gpu == NULL;
    b->totals.wrong.elements += result->wrong.elements;
    b->totals.wrong.out_of_bounds += result->wrong.out_of_bounds;
    if (b->json)
        json_result(b->json, &c, result);
    return RING_OK;
}

static ring_status measure_size(bench *b, perf_case c, size_t bytes)
{
    perf_result out_of_place, in_place;
    c.count = perf_count(c.collective, bytes, ring_dtype_size(c.dtype), c.ranks);
    for (int rank = 0; rank < c.ranks; rank++)
        b->counts[rank] = c.count;
    c.counts = b->counts;
    c.lists = b->lists;
    RING_TRY(measure_place(b, c, false, &out_of_place));
    RING_TRY(measure_place(b, c, true, &in_place));
    if (b->self.rank != 0)
        return RING_OK;
    progress_clear(&b->self.progress);
    table_row(stdout, &b->options, &c, &out_of_place, &in_place);
    return RING_OK;
}

static ring_status measure_sizes(bench *b, perf_case c)
{
    const perf_sizes *sizes = &b->options.sizes;
    const int cycles = b->options.cycles;
    for (int cycle = 0; cycles == 0 || cycle < cycles; cycle += cycles != 0)
        for (size_t bytes = sizes->min; bytes <= sizes->max; bytes = perf_sizes_next(sizes, bytes))
            RING_TRY(measure_size(b, c, bytes));
    return RING_OK;
}

/* The values [first, last] of an option that are measured in turn. */
typedef struct choices {
    int first, last;
} choices;

/* @param chosen   the option's value, or PERF_ALL for all of [0, count)
 * @param matters  false if the collective does not use the option; @p without is then the value */
static choices choices_of(int chosen, int count, bool matters, int without)
{
    if (!matters)
        return (choices){without, without};
    return chosen == PERF_ALL ? (choices){0, count - 1} : (choices){chosen, chosen};
}

static ring_status measure_roots(bench *b, perf_case c)
{
    const choices roots = choices_of(b->options.root, b->self.ranks, c.collective->rooted, 0);
    for (c.root = roots.first; c.root <= roots.last; c.root++)
        RING_TRY(measure_sizes(b, c));
    return RING_OK;
}

static ring_status measure_all(bench *b)
{
    const perf_options *o = &b->options;
    const perf_collective *collective = o->collective;
    const choices dtypes = choices_of(o->dtype, RING_DTYPE_COUNT, !collective->empty, RING_UINT8);
    const choices ops = choices_of(o->op, RING_OP_COUNT, collective->reduces, RING_SUM);
    for (int dtype = dtypes.first; dtype <= dtypes.last; dtype++)
        for (int op = ops.first; op <= ops.last; op++)
            if (perf_serves(collective, (ring_dtype)dtype, (ring_op)op))
                RING_TRY(measure_roots(b, (perf_case){.collective = collective,
                                                      .dtype = (ring_dtype)dtype,
                                                      .op = (ring_op)op,
                                                      .rank = b->self.rank,
                                                      .ranks = b->self.ranks}));
    return RING_OK;
}

/* ---- The run ---- */

static ring_status describe(bench *b)
{
    RING_TRY(open_gpu(b));
    if (b->self.rank == 0)
        table_header(stdout, &b->options);
    RING_TRY(print_ranks(b));
    RING_TRY(open_json(b));
    RING_TRY(open_memory(b));
    if (b->self.rank == 0)
        table_columns(stdout, &b->options);
    fflush(stdout);
    return RING_OK;
}

static ring_status run(bench *b)
{
    ring_comm_info info = {.size = sizeof info};
    RING_TRY(describe(b));
    RING_TRY(measure_all(b));
    RING_TRY(ring_comm_get_info(b->self.comm, &info));
    b->totals.comm_bytes = info.memory;
    if (b->self.rank == 0)
        table_footer(stdout, &b->options, &b->totals);
    return RING_OK;
}

/* @return why the options cannot be used with this number of ranks; NULL if they can. */
static const char *unfit(const perf_options *options, int ranks)
{
    if (options->collective->pair && ranks < 2)
        return "this collective needs at least 2 ranks; start them with ringrun -n, or give -t";
    if (options->collective->rooted && options->root >= ranks)
        return "--root must be below the number of ranks";
    const bool chosen = options->op != PERF_ALL && options->dtype != PERF_ALL;
    if (options->collective->prefix && options->op == RING_AVG)
        return "--op avg averages over all ranks, but this collective does not combine all of them";
    if (options->collective->reduces && chosen &&
        !perf_serves(options->collective, (ring_dtype)options->dtype, (ring_op)options->op))
        return options->op == RING_PREMUL_SUM
                   ? "--op is for floats; give a float type by --datatype"
                   : "--op is for integers; give an integer type by --datatype";
    return NULL;
}

static void open_rank(bench *b, const perf_options *options, ring_comm *comm)
{
    *b = (bench){.options = *options, .info = {.size = sizeof b->info}};
    ring_comm_get_info(comm, &b->info);
    if (options->collective->empty)
        b->options.sizes.min = b->options.sizes.max = 0;
    b->self = (perf_rank){.options = &b->options,
                          .comm = comm,
                          .rank = b->info.rank,
                          .ranks = b->info.ranks,
                          .gate = stopwatch_gate_useful(b->info.hosts, b->info.local_ranks)};
}

/* After a failure, peers may still access the buffers, so they remain until the process ends.
 * @return false if the file of --json could not be written. */
static bool close_rank(bench *b, bool failed)
{
    if (!failed) {
        perf_buffers_close(&b->self.buffers);
        perf_gpu_close(&b->gpu);
    }
    free(b->self.times);
    free(b->counts);
    free(b->lists);
    return output_close(b->json, b->options.json);
}

int bench_run(const perf_options *options, ring_comm *comm)
{
    bench b;
    open_rank(&b, options, comm);
    const char *why_not = unfit(options, b.self.ranks);
    if (why_not) {
        if (b.self.rank == 0)
            fprintf(stderr, "ringperf %s: %s\n", options->collective->name, why_not);
        return PERF_EXIT_USAGE;
    }
    const ring_status status = run(&b);
    progress_clear(&b.self.progress);
    if (status != RING_OK && !b.reported) {
        const char *reason = ring_last_error(comm);
        if (*reason == '\0') /* a call was rejected, which does not end the communicator */
            reason = ring_last_error(NULL);
        fprintf(stderr, "ringperf: rank %d: %s\n", b.self.rank, reason);
    }
    const bool kept = close_rank(&b, status != RING_OK);
    if (status != RING_OK || !kept)
        return PERF_EXIT_ERROR;
    return perf_good(options, &b.totals) ? PERF_EXIT_GOOD : PERF_EXIT_WRONG;
}
