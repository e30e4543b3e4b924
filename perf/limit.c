/* SPDX-License-Identifier: Apache-2.0
 *
 * ringlimit: what this machine allows two threads: the allreduce that nothing can beat, the
 * hand-over of a cache line and of a futex, small messages pushed in one line, a TCP stream
 * through the loopback. The figures that ringperf's are to be read against, in the same run.
 */
#include "limit.h"
#include "perf_output.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_GOOD, EXIT_USAGE = 2, EXIT_FAILED = 3 };

enum { WANT_ALL_REDUCE = 1, WANT_LINE = 2, WANT_FUTEX = 4, WANT_TCP = 8, WANT_PUSH = 16 };

static const struct {
    const char *name;
    int bit;
} measurements[] = {{"all_reduce", WANT_ALL_REDUCE},
                    {"line", WANT_LINE},
                    {"futex", WANT_FUTEX},
                    {"push", WANT_PUSH},
                    {"tcp", WANT_TCP}};

#define MEASUREMENTS (sizeof measurements / sizeof *measurements)

typedef struct limit_options {
    perf_sizes sizes;
    int iters, warmup, wanted;
    bool aliased, help;
    const char *json;
} limit_options;

/* ---- The command line ---- */

static void print_help(void)
{
    puts("usage: ringlimit [options] [all_reduce] [line] [futex] [push] [tcp]\n\n"
         "What this machine allows between two threads; without names, all of it.\n"
         "  all_reduce   each thread adds half of both buffers and writes both; they meet once\n"
         "  line         hand-over of a cache line\n"
         "  futex        hand-over through the kernel\n"
         "  push         a meeting: each pushes a line with turn, signature and 8 or 40 bytes\n"
         "               to the other, checks what came and adds it\n"
         "  tcp          a stream over 127.0.0.1\n\n"
         "  -b, --minbytes SIZE      8 (K M G T)\n"
         "  -e, --maxbytes SIZE      64M\n"
         "  -i, --stepbytes SIZE     from size to size\n"
         "  -f, --stepfactor N       or times N, 8\n"
         "  -n, --iters N            timed calls, 50\n"
         "  -w, --warmup_iters N     calls before, 5\n"
         "      --aliased            buffers exactly a power of two apart: shows what they cost\n"
         "      --json FILE          written anew, one object a line\n\n"
         "exit status: 0 good, 2 usage, 3 anything else");
}

static bool set_option(int letter, const char *text, limit_options *o)
{
    switch (letter) {
    case 'b':
        return perf_size_parse(text, &o->sizes.min);
    case 'e':
        return perf_size_parse(text, &o->sizes.max);
    case 'i':
        o->sizes.factor = 1;
        return perf_size_parse(text, &o->sizes.step) && o->sizes.step;
    case 'f':
        return perf_int_parse(text, 2, 1024, &o->sizes.factor);
    case 'n':
        return perf_int_parse(text, 1, 1000000, &o->iters);
    case 'w':
        return perf_int_parse(text, 0, 1000000, &o->warmup);
    case 'A':
        o->aliased = true;
        return true;
    case 'J':
        o->json = text;
        return *text != '\0';
    case 'h':
        o->help = true;
        return true;
    default:
        return false;
    }
}

static bool add_measurement(const char *name, limit_options *o)
{
    for (size_t i = 0; i < MEASUREMENTS; i++)
        if (strcmp(name, measurements[i].name) == 0) {
            o->wanted |= measurements[i].bit;
            return true;
        }
    return false;
}

static bool refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool refuse(const char *format, ...)
{
    va_list args;
    fputs("ringlimit: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs("; see ringlimit --help\n", stderr);
    return false;
}

static bool refuse_option(int letter, char **argv)
{
    const char *word = argv[optind - 1];
    if (letter == '?')
        return refuse("unknown option %s", word);
    if (letter == ':')
        return refuse("%s needs a value", word);
    return word == optarg ? refuse("%s %s is not allowed", argv[optind - 2], word)
                          : refuse("%s is not allowed", word);
}

static bool parse(int argc, char **argv, limit_options *o)
{
    static const struct option longs[] = {{"minbytes", required_argument, NULL, 'b'},
                                          {"maxbytes", required_argument, NULL, 'e'},
                                          {"stepbytes", required_argument, NULL, 'i'},
                                          {"stepfactor", required_argument, NULL, 'f'},
                                          {"warmup_iters", required_argument, NULL, 'w'},
                                          {"iters", required_argument, NULL, 'n'},
                                          {"json", required_argument, NULL, 'J'},
                                          {"aliased", no_argument, NULL, 'A'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *o = (limit_options){.sizes = {.min = 8, .max = 64 << 20, .factor = 8},
                         .iters = 50,
                         .warmup = 5};
    int letter;
    while ((letter = getopt_long(argc, argv, ":b:e:i:f:n:w:h", longs, NULL)) != -1)
        if (!set_option(letter, optarg, o))
            return refuse_option(letter, argv);
    for (; optind < argc; optind++)
        if (!add_measurement(argv[optind], o))
            return refuse("unknown measurement \"%s\"", argv[optind]);
    if (o->sizes.min > o->sizes.max)
        return refuse("--minbytes is above --maxbytes");
    if (o->wanted == 0)
        o->wanted = ~0;
    return true;
}

/* ---- The figures ---- */

typedef struct report {
    limit_options options;
    limit_cores cores;
    FILE *json;
    bool failed;
} report;

static void write_sized(report *r, const char *name, size_t bytes, double us)
{
    const double gb_s = us > 0 ? (double)bytes / us * 1e-3 : 0;
    if (us < 0) {
        r->failed = true;
        return;
    }
    printf("%12zu  %12.2f  %8.2f\n", bytes, us, gb_s);
    fflush(stdout);
    if (r->json)
        fprintf(r->json,
                "{\"measurement\": \"%s\", \"bytes\": %zu, \"aliased\": %s, "
                "\"time_us\": %.9g, \"busbw\": %.9g}\n",
                name, bytes, r->options.aliased ? "true" : "false", us, gb_s);
}

static void write_single(report *r, const char *name, const char *where, double us)
{
    if (us < 0) {
        r->failed = true;
        return;
    }
    printf("# hand-over of a %s, %s : %.3f us\n", name, where, us);
    if (r->json)
        fprintf(r->json, "{\"measurement\": \"%s\", \"where\": \"%s\", \"time_us\": %.9g}\n", name,
                where, us);
}

static void write_push(report *r, size_t bytes, const char *where)
{
    const double us = limit_push(bytes, r->cores);
    if (us < 0) {
        r->failed = true;
        return;
    }
    printf("# meeting by a pushed line with %zu bytes, %s : %.3f us\n", bytes, where, us);
    if (r->json)
        fprintf(r->json,
                "{\"measurement\": \"push\", \"where\": \"%s\", \"bytes\": %zu, "
                "\"time_us\": %.9g}\n",
                where, bytes, us);
}

static void print_columns(const char *title)
{
    printf("#\n# %s\n# %10s  %12s  %8s\n# %10s  %12s  %8s\n", title, "size", "time", "busbw", "(B)",
           "(us)", "(GB/s)");
}

static void measure_all_reduce(report *r)
{
    const limit_options *o = &r->options;
    print_columns(
        o->aliased
            ? "all_reduce of 2 threads, float sum in place, buffers a power of two apart (they "
              "alias)"
            : "all_reduce of 2 threads, float sum in place, buffers an odd number of pages apart");
    for (size_t bytes = o->sizes.min; bytes <= o->sizes.max;
         bytes = perf_sizes_next(&o->sizes, bytes))
        write_sized(r, "all_reduce", bytes,
                    limit_all_reduce(bytes, o->iters, o->warmup, o->aliased, r->cores));
}

static void measure_tcp(report *r)
{
    const limit_options *o = &r->options;
    print_columns("one way through one TCP connection over 127.0.0.1");
    for (size_t bytes = o->sizes.min; bytes <= o->sizes.max;
         bytes = perf_sizes_next(&o->sizes, bytes))
        write_sized(r, "tcp", bytes, limit_tcp_stream(bytes, o->iters, o->warmup, r->cores));
}

static void measure(report *r)
{
    const bool two = r->cores.first != r->cores.second;
    const limit_cores same = {r->cores.first, r->cores.first};
    const char *across = two ? "across cores" : "on one core";
    printf("# ringlimit: two threads on cores %d and %d; median over calls of the slower one\n",
           r->cores.first, r->cores.second);
    if (r->options.wanted & WANT_LINE)
        write_single(r, "cache line", across, limit_line_handover(r->cores));
    if (r->options.wanted & WANT_FUTEX)
        write_single(r, "futex", across, limit_futex_handover(r->cores));
    if (two && r->options.wanted & WANT_FUTEX)
        write_single(r, "futex", "on one core", limit_futex_handover(same));
    if (r->options.wanted & WANT_PUSH) {
        write_push(r, LIMIT_PUSH_LEAST, across);
        write_push(r, LIMIT_PUSH_MOST, across);
    }
    if (r->options.wanted & WANT_ALL_REDUCE)
        measure_all_reduce(r);
    if (r->options.wanted & WANT_TCP)
        measure_tcp(r);
}

static bool open_json(report *r)
{
    if (!r->options.json)
        return true;
    r->json = fopen(r->options.json, "we");
    if (!r->json)
        fprintf(stderr, "ringlimit: --json %s: %s\n", r->options.json, strerror(errno));
    return r->json != NULL;
}

static int run(int argc, char **argv)
{
    report r = {.cores = limit_find_cores()};
    if (!parse(argc, argv, &r.options))
        return EXIT_USAGE;
    if (r.options.help) {
        print_help();
        return EXIT_GOOD;
    }
    if (!open_json(&r))
        return EXIT_FAILED;
    measure(&r);
    const bool kept = output_close(r.json, "ringlimit", r.options.json);
    return r.failed || !kept ? EXIT_FAILED : EXIT_GOOD;
}

int main(int argc, char **argv)
{
    const int status = run(argc, argv);
    return output_flush(stdout, "ringlimit", "standard output") ? status : EXIT_FAILED;
}
