/* SPDX-License-Identifier: Apache-2.0
 *
 * result_table: prints the header, rows and footer. Every cell has a fixed width: a number that is
 * too long for its cell is printed with fewer decimals, or with an exponent, so that the columns
 * after it stay aligned.
 */
#include "result_table.h"
#include "sysfs.h"
#include "words.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- Before the rows ---- */

static void note_options(FILE *out, const perf_options *options)
{
    if (options->blocking == 1)
        fputs("# Blocking Enabled: wait and barrier after each inner iteration (-m)\n", out);
    if (options->blocking == 2)
        fputs("# Blocking Enabled: host calls always wait, so -z 2 changes nothing\n", out);
    if (options->blocking == 3)
        fputs("# Blocking Enabled: wait and barrier after each outer iteration (-n); time excludes "
              "barrier\n",
              out);
    if (options->parallel_init >= 0)
        fprintf(out, "# Parallel Init: threads always join in parallel, so -p %d changes nothing\n",
                options->parallel_init);
    if (options->op != RING_SUM && !options->collective->reduces)
        fprintf(out, "# Note: %s does not combine values, so -o changes nothing\n",
                options->collective->name);
    if (options->root != 0 && !options->collective->rooted)
        fprintf(out, "# Note: %s has no root, so -r changes nothing\n", options->collective->name);
    if (options->collective->empty)
        fprintf(out, "# Note: %s moves no data, so sizes and types change nothing\n",
                options->collective->name);
}

static void note_method(FILE *out, const perf_options *options)
{
    static const char *const across[] = {"rank 0", "the mean rank", "the fastest rank",
                                         "the slowest rank"};
    static const char *const memories[] = {"shared (ring_mem_alloc)", "plain (malloc)",
                                           "of a GPU (cuMemAlloc)"};
    const int average = options->average != PERF_AVERAGE_DEFAULT ? options->average
                        : options->hot                           ? PERF_MEAN
                                                                 : PERF_SLOWEST;
    fprintf(out, "# Time: %s over calls of %s; %s\n", options->hot ? "mean" : "median",
            across[average],
            options->hot ? "back to back, buffers not rewritten between calls"
                         : "buffers rewritten before each call");
    fprintf(out, "# Buffers: %s\n", memories[options->memory]);
    if (options->graph > 0)
        fprintf(out, "# Calls: captured into a graph, replayed %d time%s, with one wait for all\n",
                options->graph, plural(options->graph));
    else if (options->stream)
        fputs("# Calls: enqueued on a stream, with one wait for all\n", out);
    if (options->prepared)
        fputs("# Calls: prepared once, then started (ring_prepared_start)\n", out);
    if (options->tagged)
        fputs("# Calls: tagged\n", out);
    if (!options->iters_given)
        fputs("# Without -n, long calls are repeated fewer than 20 times: for 2 s, at least 5 "
              "times\n",
              out);
    if (options->per_iter && options->per_iter_skip)
        fprintf(out, "# Per-Iteration Report: the columns leave out the first %d iteration%s\n",
                options->per_iter_skip, plural(options->per_iter_skip));
}

void table_header(FILE *out, const perf_options *options)
{
    static const char *const unused[] = {"NCCL_TESTS_SPLIT", "NCCL_TESTS_SPLIT_MASK",
                                         "NCCL_TESTS_DEVICE"};
    const bool factor = options->sizes.factor > 1;
    fprintf(out, "# ringperf version %d.%d.%d (columns of nccl-tests)\n", RING_VERSION_MAJOR,
            RING_VERSION_MINOR, RING_VERSION_PATCH);
    fprintf(out, "# Collective test starting: %s\n", options->collective->name);
    fprintf(out,
            "# nThread %d nGpus %d minBytes %zu maxBytes %zu step: %zu(%s) warmup iters: %d iters: "
            "%d agg iters: %d validation: %d graph: %d unalign: %d\n",
            options->threads, options->ngpus, options->sizes.min, options->sizes.max,
            factor ? (size_t)options->sizes.factor : options->sizes.step,
            factor ? "factor" : "bytes", options->warmup_iters, options->iters, options->agg_iters,
            options->check, options->graph, options->unalign);
    note_method(out, options);
    note_options(out, options);
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
        if (getenv(unused[i]))
            fprintf(out, "# Note: ringperf does not use the variable %s\n", unused[i]);
    fputs("#\n# Using devices\n", out);
}

void table_rank_line(char line[TABLE_RANK_LINE], const ring_comm_info *info, const perf_gpu *gpu)
{
    char host[32] = "", cpu[64];
    gethostname(host, sizeof host - 1);
    if (!sysfs_value(cpu, sizeof cpu, "model name", "/proc/cpuinfo"))
        strcpy(cpu, "cpu");
    memset(line, 0, TABLE_RANK_LINE);
    const int length = snprintf(line, TABLE_RANK_LINE,
                                "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s] %s\n",
                                info->rank, 0, (int)getpid(), host,
                                gpu ? gpu->ordinal : info->local_rank, info->transport,
                                gpu ? gpu->name : cpu);
    if (length >= TABLE_RANK_LINE)
        line[TABLE_RANK_LINE - 2] = '\n';
}

/* ---- Columns ---- */

static void half_columns(FILE *out, bool per_iter, const char *const words[8])
{
    fprintf(out, "  %7s  %6s  %6s  %6s", words[0], words[1], words[2], words[3]);
    if (per_iter)
        fprintf(out, "  %7s  %7s  %7s  %7s", words[4], words[5], words[6], words[7]);
}

static void column_line(FILE *out, const perf_options *options, const char *const left[5],
                        const char *const half[8], const char *stamp, const char *last)
{
    fprintf(out, "# %10s  %12s  %8s  %6s  %6s", left[0], left[1], left[2], left[3], left[4]);
    half_columns(out, options->per_iter, half);
    half_columns(out, options->per_iter, half);
    if (options->timestamps)
        fprintf(out, "  %19s", stamp);
    fprintf(out, "  %9s\n", last);
}

void table_columns(FILE *out, const perf_options *options)
{
    static const char *const names[] = {"size", "count", "type", "redop", "root"};
    static const char *const units[] = {"(B)", "(elements)", "", "", ""};
    static const char *const half[] = {"time",  "algbw", "busbw", "#wrong",
                                       "i_min", "i_max", "i_p99", "i_cv%"};
    static const char *const half_units[] = {"(us)", "(GB/s)", "(GB/s)", "",
                                             "(us)", "(us)",   "(us)",   "(%)"};
    const int wide = options->per_iter ? 67 : 31;
    fprintf(out, "#\n# %10s  %12s  %8s  %6s  %6s  %*s  %*s\n", "", "", "", "", "", wide,
            "out-of-place          ", wide, "in-place          ");
    column_line(out, options, names, half, "timestamp", "predicted");
    column_line(out, options, units, half_units, "YYYY-MM-DD hh:mm:ss", "(us)");
}

/* Prints a number in exactly @p width characters. */
static void print_number(FILE *out, int width, double value)
{
    char text[64];
    for (int digits = 2; digits >= 0; digits--)
        if (snprintf(text, sizeof text, "%*.*f", width, digits, value) <= width) {
            fprintf(out, "  %s", text);
            return;
        }
    if (snprintf(text, sizeof text, "%*.1e", width, value) > width)
        snprintf(text, sizeof text, "%*.0e", width, value);
    fprintf(out, "  %s", text);
}

static void print_absent(FILE *out, int width)
{
    fprintf(out, "  %*s", width, "N/A");
}

static void print_cell(FILE *out, int width, bool known, double value)
{
    if (known)
        print_number(out, width, value);
    else
        print_absent(out, width);
}

static void print_half(FILE *out, bool per_iter, const perf_result *result)
{
    const bool known = result->measured;
    print_cell(out, 7, known, result->time_us);
    print_cell(out, 6, known, result->algbw);
    print_cell(out, 6, known, result->busbw);
    if (known && result->checked)
        fprintf(out, "  %6g", (double)result->wrong.elements);
    else
        print_absent(out, 6);
    if (!per_iter)
        return;
    print_cell(out, 7, known, result->spread.least);
    print_cell(out, 7, known, result->spread.most);
    print_cell(out, 7, known, result->spread.p99);
    print_cell(out, 7, known, result->spread.cv);
}

void table_row(FILE *out, const perf_options *options, const perf_case *c,
               const perf_result *out_of_place, const perf_result *in_place)
{
    const perf_result *latest = in_place->measured ? in_place : out_of_place;
    fprintf(out, "%12zu  %12zu  %8s  %6s  %6d", perf_case_bytes(c), c->count,
            perf_dtype_label(c->dtype), c->collective->reduces ? ring_op_name(c->op) : "none",
            c->collective->rooted ? c->root : -1);
    print_half(out, options->per_iter, out_of_place);
    print_half(out, options->per_iter, in_place);
    if (options->timestamps) {
        char text[32];
        struct tm now;
        const time_t seconds = time(NULL);
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", localtime_r(&seconds, &now));
        fprintf(out, "  %19s", text);
    }
    print_cell(out, 9, latest->predicted_us > 0, latest->predicted_us);
    fputc('\n', out);
    fflush(out);
}

/* ---- After the rows ---- */

uint64_t perf_wrong_values(const perf_totals *totals)
{
    return totals->wrong.elements + totals->wrong.out_of_bounds;
}

double perf_average_busbw(const perf_totals *totals)
{
    return totals->measurements ? totals->busbw / (double)totals->measurements : 0;
}

bool perf_fast_enough(const perf_options *options, const perf_totals *totals)
{
    return options->min_bandwidth < 0 || perf_average_busbw(totals) >= 0.9 * options->min_bandwidth;
}

bool perf_good(const perf_options *options, const perf_totals *totals)
{
    return totals->measurements > 0 && perf_wrong_values(totals) == 0 &&
           perf_fast_enough(options, totals);
}

void table_footer(FILE *out, const perf_options *options, const perf_totals *totals)
{
    const double mib = 1024.0 * 1024.0;
    const uint64_t wrong = perf_wrong_values(totals);
    const char *bandwidth_verdict = perf_fast_enough(options, totals) ? "OK" : "FAILED";
    if (totals->crowded)
        fputs("# Note: ranks share cores, so they wait for each other, and no time is predicted\n",
              out);
    fprintf(out, "# %-20s : %llu %s\n", "Out of bounds values", (unsigned long long)wrong,
            wrong ? "FAILED" : "OK");
    fprintf(out, "# %-20s : %g %s\n", "Avg bus bandwidth", perf_average_busbw(totals),
            options->min_bandwidth < 0 ? "" : bandwidth_verdict);
    if (options->memory_report)
        fprintf(out, "# %-20s : communicator %.2f MiB | buffers %.2f MiB\n", "Memory usage",
                (double)totals->comm_bytes / mib, (double)totals->buffer_bytes / mib);
    fprintf(out, "#\n# Collective test concluded: %s\n#\n", options->collective->name);
    fflush(out);
}
