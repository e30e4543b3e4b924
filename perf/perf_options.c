/* SPDX-License-Identifier: Apache-2.0
 *
 * options: the rows, and one setter a kind of value. A wrong value is reported with the
 * option, the value and the row's help, which says what is allowed.
 */
#include "perf_options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef enum row_kind {
    ROW_INT,
    ROW_SIZE,
    ROW_REAL,
    ROW_DTYPE,
    ROW_OP,
    ROW_ROOT,
    ROW_BUFFER,
    ROW_REGISTER,
    ROW_TEXT,
    ROW_HOT,
    ROW_HELP,
    ROW_VERSION,
    ROW_NONE /* not for host memory, at any value */
} row_kind;

typedef struct row {
    int letter; /* above 255: long name only */
    const char *name, *value;
    row_kind kind;
    size_t field;
    int least, most;
    const char *help;
} row;

#define FIELD(name) offsetof(perf_options, name)
#define MANY 1000000000

static const row rows[] = {
    {'t', "nthreads", "N", ROW_INT, FIELD(threads), 1, PERF_MOST_THREADS,
     "ranks, as threads of this process"},
    {'g', "ngpus", "1", ROW_INT, FIELD(ngpus), 1, 1, "only 1: a rank is a thread (see -t)"},
    {'b', "minbytes", "SIZE", ROW_SIZE, FIELD(sizes.min), 0, 0, "smallest size, 32M (K M G T)"},
    {'e', "maxbytes", "SIZE", ROW_SIZE, FIELD(sizes.max), 0, 0, "largest size, 32M"},
    {'i', "stepbytes", "SIZE", ROW_SIZE, FIELD(sizes.step), 0, 0, "from size to size, 1M"},
    {'f', "stepfactor", "N", ROW_INT, FIELD(sizes.factor), 0, 1024, "or times N, instead of -i"},
    {'n', "iters", "N", ROW_INT, FIELD(iters), 1, 10000000,
     "timed calls, 20; without it long calls are repeated less (2 s, at least 5 calls)"},
    {'m', "agg_iters", "N", ROW_INT, FIELD(agg_iters), 1, MANY,
     "calls timed as one, back to back; the time is divided by N"},
    {'w', "warmup_iters", "N", ROW_INT, FIELD(warmup_iters), 0, MANY, "calls before the timed, 1"},
    {'N', "run_cycles", "N", ROW_INT, FIELD(cycles), 0, MANY, "times through all; 0: endless"},
    {'p', "parallel_init", "0|1", ROW_INT, FIELD(parallel_init), 0, 1,
     "threads join in parallel either way; noted in the header"},
    {'c', "check", "N", ROW_INT, FIELD(check), 0, MANY, "calls whose every value is checked, 1"},
    {'o', "op", "NAME", ROW_OP, FIELD(op), 0, 0,
     "sum, prod, min, max, avg, all; of use where values are combined"},
    {'d', "datatype", "NAME", ROW_DTYPE, FIELD(dtype), 0, 0,
     "float, half, double, int32, … or float32, float16, …; all (no 8-bit floats)"},
    {'r', "root", "R", ROW_ROOT, FIELD(root), 0, 0, "rank of the root, or all (-1)"},
    {'z', "blocking", "0-3", ROW_INT, FIELD(blocking), 0, 3,
     "1: time a barrier after each call; 3: an untimed one; 0, 2: none (host calls wait)"},
    {'y', "stream_null", "0", ROW_INT, FIELD(off), 0, 0, "only 0: host calls have no stream"},
    {'T', "timeout", "S", ROW_REAL, FIELD(timeout), 0, 0, "seconds a call may take"},
    {'G', "cudagraph", "0", ROW_INT, FIELD(off), 0, 0, "only 0: host calls have no graph"},
    {'C', "report_cputime", "0", ROW_INT, FIELD(off), 0, 0,
     "only 0: a host call returns when it is done, so its time is all there is"},
    {'S', "report_timestamps", "0|1", ROW_INT, FIELD(timestamps), 0, 1, "a column with the time"},
    {'J', "output_file", "FILE", ROW_TEXT, FIELD(json), 0, 0, "the same as --json"},
    {'a', "average", "0-3", ROW_INT, FIELD(average), 0, 3,
     "time of a call: 0 rank 0's, 1 mean, 2 least, 3 most; 3 (--hot: 1)"},
    {'R', "local_register", "0|2", ROW_REGISTER, FIELD(memory), 0, 0,
     "0: --buffer plain; 2 (symmetric memory): --buffer shared"},
    {'x', "cta_policy", "N", ROW_NONE, 0, 0, 0, "not here: there are no GPU kernels"},
    {'D', "device_implementation", "0", ROW_INT, FIELD(off), 0, 0,
     "only 0: there are no GPU kernels"},
    {'V', "device_cta_count", "N", ROW_NONE, 0, 0, 0, "not here: there are no GPU kernels"},
    {'M', "memory", "0|1", ROW_INT, FIELD(memory_report), 0, 1, "memory used, in the footer"},
    {'u', "unalign", "N", ROW_INT, FIELD(unalign), 0, 256, "move the buffers by N elements"},
    {'I', "per_iter_timing", "0|1", ROW_INT, FIELD(per_iter), 0, 1,
     "columns i_min i_max i_p99 i_cv% over the timed calls"},
    {'K', "per_iter_skip", "N", ROW_INT, FIELD(per_iter_skip), 0, MANY,
     "leave the first N calls out of -I"},
    {'h', "help", NULL, ROW_HELP, 0, 0, 0, "this text"},
    {256, "json", "FILE", ROW_TEXT, FIELD(json), 0, 0,
     "written anew by rank 0: one object a line, out-of-place and in-place"},
    {257, "buffer", "KIND", ROW_BUFFER, FIELD(memory), 0, 0,
     "shared: ring_mem_alloc (default); plain: malloc"},
    {258, "hot", NULL, ROW_HOT, 0, 0, 0,
     "call back to back without rewriting the buffers; mean time, as nccl-tests"},
    {259, "version", NULL, ROW_VERSION, 0, 0, 0, "print the version"},
};

#define ROWS (sizeof rows / sizeof *rows)

static perf_parsed wrong(char *error, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static perf_parsed wrong(char *error, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, size, format, args);
    va_end(args);
    return PERF_WRONG;
}

static bool set_root(const char *text, int *root)
{
    if (strcmp(text, "all") == 0) {
        *root = PERF_ALL;
        return true;
    }
    return perf_int_parse(text, PERF_ALL, 1 << 20, root);
}

/* The two sets of words that choose the buffers' memory. */
static bool set_memory(const char *text, const char *shared, const char *plain, perf_memory *memory)
{
    *memory = strcmp(text, shared) == 0 ? PERF_SHARED : PERF_PLAIN;
    return *memory == PERF_SHARED || strcmp(text, plain) == 0;
}

static bool set_value(const row *r, const char *text, perf_options *out)
{
    void *field = (char *)out + r->field;
    switch (r->kind) {
    case ROW_INT:
        return perf_int_parse(text, r->least, r->most, field);
    case ROW_SIZE:
        return perf_size_parse(text, field);
    case ROW_REAL:
        return perf_real_parse(text, field);
    case ROW_DTYPE:
        return perf_dtype_parse(text, field);
    case ROW_OP:
        return perf_op_parse(text, field);
    case ROW_ROOT:
        return set_root(text, field);
    case ROW_BUFFER:
        return set_memory(text, "shared", "plain", field);
    case ROW_REGISTER:
        return set_memory(text, "2", "0", field);
    case ROW_TEXT:
        memcpy(field, &text, sizeof text);
        return *text != '\0';
    case ROW_HOT:
        out->hot = true;
        return true;
    case ROW_HELP:
    case ROW_VERSION:
        return true;
    case ROW_NONE:
        break;
    }
    return false;
}

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
    .min_bandwidth = -1,
};

static void make_getopt(struct option *longs, char *letters)
{
    *letters++ = '+'; /* stop at the first word that is no option */
    *letters++ = ':';
    for (size_t i = 0; i < ROWS; i++) {
        longs[i] = (struct option){rows[i].name, rows[i].value ? required_argument : no_argument,
                                   NULL, rows[i].letter};
        if (rows[i].letter > 255)
            continue;
        *letters++ = (char)rows[i].letter;
        if (rows[i].value)
            *letters++ = ':';
    }
    *letters = '\0';
    longs[ROWS] = (struct option){0};
}

static const row *row_of(int letter)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].letter == letter)
            return &rows[i];
    return NULL;
}

/* Reads the options after COLLECTIVE. */
static perf_parsed parse_rows(int argc, char **argv, perf_options *out, char *error, size_t size)
{
    struct option longs[ROWS + 1];
    char letters[2 * ROWS + 3];
    make_getopt(longs, letters);
    optind = 0;
    for (;;) {
        const int given = optind;
        const int letter = getopt_long(argc, argv, letters, longs, NULL);
        if (letter == -1)
            break;
        const char *word = argv[given ? given : 1];
        if (letter == '?')
            return wrong(error, size, "unknown option %s; --help lists all", word);
        if (letter == ':')
            return wrong(error, size, "option %s needs a value; --help lists all", word);
        const row *r = row_of(letter);
        if (!set_value(r, optarg, out))
            return wrong(error, size, "--%s %s: not allowed; %s", r->name, optarg, r->help);
        if (r->kind == ROW_HELP || r->kind == ROW_VERSION)
            return r->kind == ROW_HELP ? PERF_HELP : PERF_VERSION;
        if (letter == 'n')
            out->iters_given = true;
    }
    if (optind < argc)
        return wrong(error, size, "unexpected word \"%s\": first the collective, then options",
                     argv[optind]);
    return PERF_PARSED;
}

static perf_parsed check_together(perf_options *out, char *error, size_t size)
{
    if (out->sizes.min > out->sizes.max)
        return wrong(error, size, "--minbytes %zu is above --maxbytes %zu", out->sizes.min,
                     out->sizes.max);
    if (out->sizes.step == 0 && out->sizes.factor <= 1)
        return wrong(error, size, "--stepbytes 0 would never end; give -i or -f");
    if (out->per_iter_skip && !out->per_iter)
        return wrong(error, size, "--per_iter_skip needs --per_iter_timing 1");
    if (out->per_iter_skip >= out->iters)
        return wrong(error, size, "--per_iter_skip %d leaves nothing of --iters %d",
                     out->per_iter_skip, out->iters);
    if (out->per_iter)
        out->iters_given = true; /* the columns speak of exactly these calls */
    return PERF_PARSED;
}

static perf_parsed read_environment(perf_options *out, char *error, size_t size)
{
    static const char *const names[] = {"RINGPERF_MIN_BW", "NCCL_TESTS_MIN_BW"};
    for (size_t i = 0; i < 2; i++) {
        const char *text = getenv(names[i]);
        if (!text)
            continue;
        if (!perf_real_parse(text, &out->min_bandwidth))
            return wrong(error, size, "%s=%s: not a number of GB/s", names[i], text);
        return PERF_PARSED;
    }
    return PERF_PARSED;
}

static perf_parsed unknown_collective(const char *name, char *error, size_t size)
{
    int used = snprintf(error, size, "unknown collective \"%s\"; one of", name);
    for (size_t i = 0; perf_collective_at(i) && used > 0 && (size_t)used < size; i++)
        used += snprintf(error + used, size - (size_t)used, " %s", perf_collective_at(i)->name);
    return PERF_WRONG;
}

perf_parsed perf_options_parse(int argc, char **argv, perf_options *out, char *error,
                               size_t error_size)
{
    *out = defaults;
    const char *first = argc > 1 ? argv[1] : "--help";
    const bool named = *first != '-';
    if (named && !(out->collective = perf_collective_find(first)))
        return unknown_collective(first, error, error_size);
    if (argc < 2)
        return wrong(error, error_size, "which collective? e.g. ringperf all_reduce -t 2");
    const perf_parsed parsed = parse_rows(argc - named, argv + named, out, error, error_size);
    if (parsed != PERF_PARSED)
        return parsed;
    if (!named)
        return wrong(error, error_size, "first the collective: ringperf COLLECTIVE [options]");
    if (check_together(out, error, error_size) != PERF_PARSED)
        return PERF_WRONG;
    return read_environment(out, error, error_size);
}

void perf_options_help(FILE *out)
{
    fputs("usage: ringperf COLLECTIVE [options]\n"
          "       ringperf plan COLLECTIVE --ranks N [options]   (ringperf plan --help)\n\n"
          "Measures a collective and checks every value. Ranks come from ringrun, torchrun,\n"
          "mpirun, srun or RING_* variables; with -t N from threads of one process.\n\n"
          "collectives:",
          out);
    for (size_t i = 0; perf_collective_at(i); i++)
        fprintf(out, " %s", perf_collective_at(i)->name);
    fputs("\n\noptions:\n", out);
    for (size_t i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        char left[64];
        const int used = r->letter < 256 ? snprintf(left, sizeof left, "-%c, ", r->letter)
                                         : snprintf(left, sizeof left, "    ");
        snprintf(left + used, sizeof left - (size_t)used, "--%s %s", r->name,
                 r->value ? r->value : "");
        fprintf(out, "  %-32s %s\n", left, r->help);
    }
    fputs("\nenvironment:\n"
          "  RINGPERF_MIN_BW (or NCCL_TESTS_MIN_BW)  fail if the average busbw is below 0.9 of it\n"
          "exit status: 0 good, 1 wrong values or too slow, 2 usage, 3 anything else\n",
          out);
}
