/* SPDX-License-Identifier: Apache-2.0
 * Holds the table of options and checks their combinations. */
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
    {"nthreads", 't', "N", "Ranks, as threads of this process", args_whole, AT(threads),
     BETWEEN(1, PERF_MOST_THREADS)},
    {"ngpus", 'g', "N", "With --device cuda: GPUs a thread, 1; each is a rank, with a thread too",
     args_whole, AT(ngpus), BETWEEN(1, PERF_MOST_THREADS)},
    {"parallel_init", 'p', "0|1", "Threads join in parallel either way; noted in the header",
     args_whole, AT(parallel_init), BETWEEN(0, 1)},
    {.help = "Sizes and values:"},
    {"minbytes", 'b', "SIZE", "Smallest size, 32M (K M G T)", args_size, AT(sizes.min)},
    {"maxbytes", 'e', "SIZE", "Largest size, 32M", args_size, AT(sizes.max)},
    {"stepbytes", 'i', "SIZE", "From size to size, 1M", args_size, AT(sizes.step)},
    {"stepfactor", 'f', "N", "Or times N, instead of -i", args_whole, AT(sizes.factor),
     BETWEEN(0, 1024)},
    {"datatype", 'd', "NAME", "float, half, double, int32, f8e4m3, … or float32, float16, …; all",
     take_dtype, AT(dtype)},
    {"op", 'o', "NAME",
     "sum, prod, min, max, avg; mulsum of floats; band, bor, bxor, land, lor, lxor of integers; "
     "all; "
     "of use where values are combined",
     take_op, AT(op)},
    {"root", 'r', "R", "Rank of the root, or all (-1)", take_root, AT(root),
     BETWEEN(PERF_ALL, 1 << 20)},
    {.help = "Buffers:"},
    {"device", 0, "WHERE",
     "cpu: memory of the host (default); cuda: of GPUs, which a host's ranks take in turn; "
     "cuda:N: of GPU N",
     take_device, AT(gpu)},
    {"buffer", 0, "KIND", "shared: ring_mem_alloc (default); plain: malloc", take_memory,
     AT(memory), .names = buffers},
    {"local_register", 'R', "0|2", "0: --buffer plain; 2 (symmetric memory): --buffer shared",
     take_memory, AT(memory), .names = registrations},
    {"unalign", 'u', "N", "Move the buffers by N elements", args_whole, AT(unalign),
     BETWEEN(0, 256)},
    {.help = "Calls and their time:"},
    {"iters", 'n', "N",
     "Timed calls, 20; without it long calls are repeated less (2 s, at least 5 calls)", take_iters,
     AT(iters), BETWEEN(1, 10000000)},
    {"agg_iters", 'm', "N", "Calls timed as one, back to back; the time is divided by N",
     args_whole, AT(agg_iters), BETWEEN(1, MANY)},
    {"warmup_iters", 'w', "N", "Calls before the timed, 1", args_whole, AT(warmup_iters),
     BETWEEN(0, MANY)},
    {"run_cycles", 'N', "N", "Times through all; 0: endless", args_whole, AT(cycles),
     BETWEEN(0, MANY)},
    {"check", 'c', "N", "Calls whose every value is checked, 1", args_whole, AT(check),
     BETWEEN(0, MANY)},
    {"average", 'a', "0-3", "Time of a call: 0 rank 0's, 1 mean, 2 least, 3 most; 3 (--hot: 1)",
     args_whole, AT(average), BETWEEN(0, 3)},
    {"blocking", 'z', "0-3",
     "1: time a barrier after each call; 3: an untimed one; 0, 2: none (host calls wait)",
     args_whole, AT(blocking), BETWEEN(0, 3)},
    {"hot", 0, NULL, "Call back to back without rewriting the buffers; mean time, as nccl-tests",
     args_flag, AT(hot)},
    {"stream", 0, NULL,
     "With --device cuda: enqueue the calls on a stream and wait once; mean time, as nccl-tests",
     args_flag, AT(stream)},
    {"graph", 0, "N",
     "With --device cuda: capture the calls into a graph and replay it N times; mean time of the "
     "replays",
     args_whole, AT(graph), BETWEEN(0, MANY)},
    {"cudagraph", 'G', "N", "The same as --graph", args_whole, AT(graph), BETWEEN(0, MANY)},
    {"prepared", 0, NULL, "Check each call once and start it from there (ring_prepared_start)",
     args_flag, AT(prepared)},
    {"tagged", 0, NULL, "Calls meet by tag (ring_call.tagged); of sendrecv alone", args_flag,
     AT(tagged)},
    {"timeout", 'T', "S", "Seconds a call may take", args_seconds, AT(timeout)},
    {.help = "Output:"},
    {"json", 0, "FILE", "Rank 0 writes one object a line, out-of-place and in-place, to FILE",
     args_text, AT(json)},
    {"output_file", 'J', "FILE", "The same as --json", args_text, AT(json)},
    {"per_iter_timing", 'I', "0|1", "Columns i_min i_max i_p99 i_cv% over the timed calls",
     args_whole, AT(per_iter), BETWEEN(0, 1)},
    {"per_iter_skip", 'K', "N", "Leave the first N calls out of -I", args_whole, AT(per_iter_skip),
     BETWEEN(0, MANY)},
    {"report_timestamps", 'S', "0|1", "A column with the time", args_whole, AT(timestamps),
     BETWEEN(0, 1)},
    {"memory", 'M', "0|1", "Memory used, in the footer", args_whole, AT(memory_report),
     BETWEEN(0, 1)},
    {.help = "Understood from nccl-tests, and not here:"},
    {"stream_null", 'y', "0", "only 0: --stream makes one of its own", args_whole, AT(off),
     BETWEEN(0, 0)},
    {"report_cputime", 'C', "0", "only 0: the time of a call is that of its result", args_whole,
     AT(off), BETWEEN(0, 0)},
    {"device_implementation", 'D', "0", "only 0: ringperf has no kernels of its own", args_whole,
     AT(off), BETWEEN(0, 0)},
    {"cta_policy", 'x', "N", "not here: RING_DEVICE_BLOCKS says how many blocks a call takes",
     args_whole, BETWEEN(1, 0)},
    {"device_cta_count", 'V', "N", "not here: ringperf has no kernels of its own", args_whole,
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
        args_fail("%s is for memory of GPUs: give --device cuda, too", needs);
    if (o->gpu != PERF_NO_GPU && o->memory_given)
        args_fail("--buffer and --local_register are for memory of the host, not --device cuda");
    if (o->ngpus > PERF_MOST_THREADS / o->threads)
        args_fail("--nthreads %d with --ngpus %d: a process has %d ranks at most", o->threads,
                  o->ngpus, PERF_MOST_THREADS);
}

/* Calls that are timed together, not one by one. */
static void check_stream(const perf_options *o)
{
    const char *given = o->graph > 0 ? "--graph" : "--stream";
    if (!o->stream)
        return;
    if (o->per_iter)
        args_fail("%s: no call is timed alone, as --per_iter_timing 1 needs", given);
    if (o->blocking == 1 || o->blocking == 3)
        args_fail("%s: calls are enqueued without a wait between them, which --blocking %d adds",
                  given, o->blocking);
    if (o->graph > 0 && (o->tagged || o->prepared))
        args_fail("--graph: calls in a graph are neither tagged nor prepared");
}

static void check_together(perf_options *out)
{
    const perf_sizes *sizes = &out->sizes;
    if (out->collective == NULL)
        args_fail("which collective? e.g. ringperf all_reduce -t 2");
    if (out->prepared && out->collective->pair)
        args_fail("--prepared: %s is a send and a receive, no single call", out->collective->name);
    if (out->tagged && !out->collective->pair)
        args_fail("--tagged: %s has no tags; sendrecv has", out->collective->name);
    if (sizes->min > sizes->max)
        args_fail("--minbytes %zu is above --maxbytes %zu", sizes->min, sizes->max);
    if (sizes->step == 0 && sizes->factor <= 1)
        args_fail("--stepbytes 0 would never end; give -i or -f");
    if (out->per_iter_skip && !out->per_iter)
        args_fail("--per_iter_skip needs --per_iter_timing 1");
    if (out->per_iter_skip >= out->iters)
        args_fail("--per_iter_skip %d leaves nothing of --iters %d", out->per_iter_skip,
                  out->iters);
    check_gpu(out);
    out->stream |= out->graph > 0;
    out->hot |= out->stream;
    check_stream(out);
    if (out->gpu != PERF_NO_GPU)
        out->memory = PERF_GPU;
    if (out->per_iter)
        out->iters_given = true; /* the columns state these calls */
}

static void read_environment(perf_options *out)
{
    const char *name = getenv("RINGPERF_MIN_BW") ? "RINGPERF_MIN_BW" : "NCCL_TESTS_MIN_BW";
    const char *text = getenv(name);
    double least;
    if (text && number_real(text, &least))
        out->min_bandwidth = least;
    else if (text && name[0] == 'R')
        args_fail("%s=%s: want GB/s, a number of at least 0", name, text);
    else if (text)
        fprintf(stderr, "ringperf: %s=%s is not used: it is no number of GB/s\n", name, text);
}

/* " all_reduce reduce_scatter …" */
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
    args_fail("unknown collective \"%s\"; one of%s", word, collectives());
}

static int take_collective(char **words, int count, void *out)
{
    perf_options *o = out;
    (void)count;
    if (o->collective)
        args_fail("unexpected word \"%s\"; the collective is %s", words[0], o->collective->name);
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
        "Measures a collective and checks every value. Ranks come from ringrun, torchrun, mpirun, "
        "srun or RING_* variables; with -t N from threads of one process. \"ringperf plan\" draws "
        "and proves what a collective does; \"ringperf compare\" sets libring beside MPI and Gloo; "
        "\"ringperf overlap\" measures how well calls overlap with computation; see their --help."
        "\vCollectives:%s\n\n"
        "Environment: RINGPERF_MIN_BW (or NCCL_TESTS_MIN_BW): fail if the average busbw is below "
        "0.9 of "
        "it.\n\n"
        "Exit status: 0 good, 1 wrong values or too slow, 2 usage, 3 anything else.",
        collectives());
    *out = defaults;
    args_parse(&ringperf, argc, argv, out);
    check_together(out);
    read_environment(out);
}
