/* SPDX-License-Identifier: Apache-2.0
 * Has the table of options, parses the command line, and checks combinations of options. */
#include "perf_options.h"

#include "args.h"
#include "numbers.h"
#include "words.h"

#include <stdlib.h>
#include <string.h>

#define MANY 1000000000
#define MOST_GPU 1023

/* ---- Values -------------------------------------------------------------------------------- */

static void take_iters(const args_given *given)
{
    perf_options *o = given->out;
    args_whole(given);
    o->iters_given = true;
}

static void take_dtype(const args_given *given)
{
    if (!perf_dtype_parse(given->text, given->field))
        args_refuse(given, "expected %s", given->row->help);
}

static void take_op(const args_given *given)
{
    if (!perf_op_parse(given->text, given->field))
        args_refuse(given, "expected %s", given->row->help);
}

static void take_root(const args_given *given)
{
    perf_options *o = given->out;
    if (strcmp(given->text, "all") == 0)
        o->root = PERF_ALL;
    else
        args_whole(given);
}

static void take_memory(const args_given *given)
{
    perf_options *o = given->out;
    args_name(given);
    o->memory_given = true;
}

static void take_device(const args_given *given)
{
    static const char cuda[] = "cuda:";
    const size_t prefix = strlen(cuda);
    perf_options *o = given->out;
    long long ordinal;
    if (strcmp(given->text, "cpu") == 0)
        o->gpu = PERF_NO_GPU;
    else if (strcmp(given->text, "cuda") == 0)
        o->gpu = PERF_GPUS_IN_TURN;
    else if (strncmp(given->text, cuda, prefix) == 0 &&
             number_whole(given->text + prefix, 0, MOST_GPU, &ordinal))
        o->gpu = (int)ordinal;
    else
        args_refuse(given, "expected cpu, cuda or cuda:N, such as cuda:0");
}

/* In the order of perf_memory. */
static const char *const buffers[] = {"shared", "plain", NULL}, *const registrations[] = {"2", "0",
                                                                                          NULL};

/* ---- The options --------------------------------------------------------------------------- */

#define AT(member) ARGS_AT(perf_options, member)
#define BETWEEN(low, high) .least = (low), .most = (high)
static const args_row rows[] = {
    {.help = "Ranks:"},
    {"nthreads", 't', "N", "Ranks of this process, each a thread (default 1)", args_whole,
     AT(threads), BETWEEN(1, PERF_MOST_THREADS)},
    {"ngpus", 'g', "N",
     "With --device cuda: GPUs per thread (default 1); each GPU is a rank with a thread of its own",
     args_whole, AT(ngpus), BETWEEN(1, PERF_MOST_THREADS)},
    {"parallel_init", 'p', "0|1", "Noted in the header; threads always join in parallel",
     args_whole, AT(parallel_init), BETWEEN(0, 1)},
    {.help = "Sizes and values:"},
    {"minbytes", 'b', "SIZE", "Smallest size, with suffix K, M, G or T (default 32M)", args_size,
     AT(sizes.min)},
    {"maxbytes", 'e', "SIZE", "Largest size (default 32M)", args_size, AT(sizes.max)},
    {"stepbytes", 'i', "SIZE", "Add SIZE from one size to the next (default 1M)", args_size,
     AT(sizes.step)},
    {"stepfactor", 'f', "N", "Multiply by N from one size to the next, instead of -i", args_whole,
     AT(sizes.factor), BETWEEN(0, 1024)},
    {"datatype", 'd', "NAME",
     "float, half, double, int32, f8e4m3, … (or float32, float16, …), or all", take_dtype,
     AT(dtype)},
    {"op", 'o', "NAME",
     "sum, prod, min, max, avg; for floats also mulsum; for integers also band, bor, bxor, land, "
     "lor, lxor; or all",
     take_op, AT(op)},
    {"root", 'r', "R", "Rank of the root (default 0), or all", take_root, AT(root),
     BETWEEN(PERF_ALL, 1 << 20)},
    {.help = "Buffers:"},
    {"device", 0, "WHERE",
     "Memory of the buffers: cpu: the host's (default); cuda: that of GPUs, assigned to the ranks "
     "of a host in turn; cuda:N: that of GPU N",
     take_device, AT(gpu)},
    {"buffer", 0, "KIND", "shared: ring_mem_alloc (default); plain: malloc", take_memory,
     AT(memory), .names = buffers},
    {"local_register", 'R', "0|2",
     "0: same as --buffer plain; 2 (symmetric memory): same as --buffer shared", take_memory,
     AT(memory), .names = registrations},
    {"unalign", 'u', "N", "Move the buffers by N elements", args_whole, AT(unalign),
     BETWEEN(0, 256)},
    {.help = "Calls and their time:"},
    {"iters", 'n', "N",
     "Timed calls (default 20; by default fewer if they would take longer than 2 s, at least 5)",
     take_iters, AT(iters), BETWEEN(1, 10000000)},
    {"agg_iters", 'm', "N", "Time N calls back to back as one, and divide the time by N",
     args_whole, AT(agg_iters), BETWEEN(1, MANY)},
    {"warmup_iters", 'w', "N", "Calls before the timed calls (default 1)", args_whole,
     AT(warmup_iters), BETWEEN(0, MANY)},
    {"run_cycles", 'N', "N", "Repetitions of all measurements (default 1); 0: endless", args_whole,
     AT(cycles), BETWEEN(0, MANY)},
    {"check", 'c', "N", "Calls of which every value is checked (default 1)", args_whole, AT(check),
     BETWEEN(0, MANY)},
    {"average", 'a', "0-3",
     "Time of a call: 0: rank 0's; 1: mean, 2: least, 3: most of all ranks (default 3, with --hot "
     "1)",
     args_whole, AT(average), BETWEEN(0, 3)},
    {"blocking", 'z', "0-3",
     "1: time a barrier after each call; 3: make a barrier, but do not time it; 0, 2: no barrier",
     args_whole, AT(blocking), BETWEEN(0, 3)},
    {"hot", 0, NULL,
     "As nccl-tests: make calls back to back without rewriting the buffers; report the mean time",
     args_flag, AT(hot)},
    {"stream", 0, NULL,
     "With --device cuda, as nccl-tests: enqueue the calls on a stream and wait once; report the "
     "mean time",
     args_flag, AT(stream)},
    {"graph", 0, "N",
     "With --device cuda: capture the calls into a graph and replay it N times; report the mean "
     "time of a call",
     args_whole, AT(graph), BETWEEN(0, MANY)},
    {"cudagraph", 'G', "N", "The same as --graph", args_whole, AT(graph), BETWEEN(0, MANY)},
    {"prepared", 0, NULL,
     "Prepare each call once, and start the prepared call each time (ring_prepared_start)",
     args_flag, AT(prepared)},
    {"tagged", 0, NULL,
     "Match the send and the receive by tag (ring_call.tagged); only for sendrecv", args_flag,
     AT(tagged)},
    {"timeout", 'T', "S", "Seconds that a call may take", args_seconds, AT(timeout)},
    {.help = "Output:"},
    {"json", 0, "FILE",
     "Rank 0 writes a JSON object to FILE for each out-of-place and in-place measurement",
     args_text, AT(json)},
    {"output_file", 'J', "FILE", "The same as --json", args_text, AT(json)},
    {"per_iter_timing", 'I', "0|1", "1: add the columns i_min i_max i_p99 i_cv% of the timed calls",
     args_whole, AT(per_iter), BETWEEN(0, 1)},
    {"per_iter_skip", 'K', "N", "Leave the first N calls out of the columns of -I", args_whole,
     AT(per_iter_skip), BETWEEN(0, MANY)},
    {"report_timestamps", 'S', "0|1", "1: add a column with the time of day", args_whole,
     AT(timestamps), BETWEEN(0, 1)},
    {"memory", 'M', "0|1", "1: report the memory used in the footer", args_whole, AT(memory_report),
     BETWEEN(0, 1)},
    {.help = "Options of nccl-tests that have no use here:"},
    {"stream_null", 'y', "0", "only 0 is allowed: --stream creates its own stream", args_whole,
     AT(off), BETWEEN(0, 0)},
    {"report_cputime", 'C', "0", "only 0 is allowed: the time of a call ends with its result",
     args_whole, AT(off), BETWEEN(0, 0)},
    {"device_implementation", 'D', "0", "only 0 is allowed: ringperf has no kernels of its own",
     args_whole, AT(off), BETWEEN(0, 0)},
    {"cta_policy", 'x', "N", "not supported: RING_DEVICE_BLOCKS sets how many blocks a call uses",
     args_whole, BETWEEN(1, 0)},
    {"device_cta_count", 'V', "N", "not supported: ringperf has no kernels of its own", args_whole,
     BETWEEN(1, 0)},
    {0},
};

static const perf_options defaults = {
    .threads = 1,
    .sizes = {.min = 32 << 20, .max = 32 << 20, .step = 1 << 20, .factor = 1},
    .iters = 20,
    .agg_iters = 1,
    .warmup_iters = 1,
    .cycles = 1,
    .check = 1,
    .dtype = RING_FLOAT32,
    .op = RING_SUM,
    .average = PERF_AVERAGE_DEFAULT,
    .parallel_init = -1,
    .ngpus = 1,
    .gpu = PERF_NO_GPU,
    .min_bandwidth = -1,
};

/* ---- The command line ---------------------------------------------------------------------- */

static void check_gpu(const perf_options *o)
{
    const char *needs = o->ngpus > 1 ? "--ngpus" : o->stream ? "--stream" : "--graph";
    if (o->gpu == PERF_NO_GPU && (o->ngpus > 1 || o->stream || o->graph > 0))
        args_fail("%s requires --device cuda", needs);
    if (o->gpu != PERF_NO_GPU && o->memory_given)
        args_fail("--buffer and --local_register are for memory of the host, not --device cuda");
    if (o->ngpus > PERF_MOST_THREADS / o->threads)
        args_fail("--nthreads %d times --ngpus %d: a process can have at most %d ranks", o->threads,
                  o->ngpus, PERF_MOST_THREADS);
}

/* With --stream, all calls are timed together. Refuses options that need the time of each call. */
static void check_stream(const perf_options *o)
{
    const char *given = o->graph > 0 ? "--graph" : "--stream";
    if (!o->stream)
        return;
    if (o->per_iter)
        args_fail("%s does not time single calls, which --per_iter_timing 1 needs", given);
    if (o->blocking == 1 || o->blocking == 3)
        args_fail("%s enqueues calls without waiting between them, so it excludes --blocking %d",
                  given, o->blocking);
    if (o->graph > 0 && (o->tagged || o->prepared))
        args_fail("--graph excludes --tagged and --prepared");
}

static void check_together(perf_options *out)
{
    const perf_sizes *sizes = &out->sizes;
    if (out->collective == NULL)
        args_fail("the collective is missing; for example: ringperf all_reduce -t 2");
    if (out->prepared && out->collective->pair)
        args_fail("--prepared needs a single call, but %s is a send and a receive",
                  out->collective->name);
    if (out->tagged && !out->collective->pair)
        args_fail("--tagged: %s has no tags; only sendrecv has them", out->collective->name);
    if (sizes->min > sizes->max)
        args_fail("--minbytes %zu is above --maxbytes %zu", sizes->min, sizes->max);
    if (sizes->step == 0 && sizes->factor <= 1)
        args_fail("--stepbytes 0 would never end; give -i or -f");
    if (out->per_iter_skip && !out->per_iter)
        args_fail("--per_iter_skip needs --per_iter_timing 1");
    if (out->per_iter_skip >= out->iters)
        args_fail("--per_iter_skip %d leaves no calls of --iters %d", out->per_iter_skip,
                  out->iters);
    check_gpu(out);
    out->stream |= out->graph > 0;
    out->hot |= out->stream;
    check_stream(out);
    if (out->gpu != PERF_NO_GPU)
        out->memory = PERF_GPU;
    if (out->per_iter)
        out->iters_given = true; /* the columns describe exactly these calls */
}

static void read_environment(perf_options *out)
{
    const char *name = getenv("RINGPERF_MIN_BW") ? "RINGPERF_MIN_BW" : "NCCL_TESTS_MIN_BW";
    const char *text = getenv(name);
    double least;
    if (text && number_real(text, &least))
        out->min_bandwidth = least;
    else if (text && name[0] == 'R')
        args_fail("%s=%s: expected a number of GB/s, at least 0", name, text);
    else if (text)
        fprintf(stderr, "ringperf: ignoring %s=%s: expected a number of GB/s\n", name, text);
}

/* @return " all_reduce reduce_scatter …" */
static const char *collectives(void)
{
    static char names[512];
    size_t used = 0;
    for (size_t i = 0; perf_collective_at(i) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, " %s",
                                 perf_collective_at(i)->name);
    return names;
}

const perf_collective *perf_collective_given(const char *word)
{
    enum { MOST = 64 };
    const char *names[MOST];
    size_t count = 0;
    const perf_collective *found = perf_collective_find(word);
    if (found != NULL)
        return found;
    for (; count < MOST && perf_collective_at(count); count++)
        names[count] = perf_collective_at(count)->name;
    const char *nearest = words_nearest(word, names, count);
    if (nearest != NULL)
        args_fail("unknown collective \"%s\"; did you mean %s?", word, nearest);
    args_fail("unknown collective \"%s\"; expected one of%s", word, collectives());
}

static int take_collective(char **words, int count, void *out)
{
    perf_options *o = out;
    (void)count;
    if (o->collective)
        args_fail("unexpected word \"%s\": the collective is already %s", words[0],
                  o->collective->name);
    o->collective = perf_collective_given(words[0]);
    return 1;
}

void perf_options_parse(int argc, char **argv, perf_options *out)
{
    char doc[1536];
    const args_program ringperf = {"ringperf", rows,
                                   "COLLECTIVE\nplan COLLECTIVE --ranks N\ncompare\noverlap", doc,
                                   .take = take_collective};
    snprintf(
        doc, sizeof doc,
        "Measures a collective and checks every value. Ranks are started by ringrun, torchrun, "
        "mpirun or srun, or described by RING_* variables; with -t N they are threads of one "
        "process. \"ringperf plan\" draws the steps of a collective and proves them; "
        "\"ringperf compare\" compares libring with MPI and Gloo; \"ringperf overlap\" measures "
        "how well calls overlap with computation; see their --help."
        "\vCollectives:%s\n\n"
        "Environment: RINGPERF_MIN_BW (or NCCL_TESTS_MIN_BW): exit with status 1 if the average "
        "busbw is below 0.9 times this value.\n\n"
        "Exit status: 0 good, 1 wrong values or too slow, 2 usage, 3 anything else.",
        collectives());
    *out = defaults;
    args_parse(&ringperf, argc, argv, out);
    check_together(out);
    read_environment(out);
}
