/* SPDX-License-Identifier: Apache-2.0
 *
 * ringlimit: measures the limits of this machine, to compare them with the figures of ringperf and
 * ringtrain. For two threads, the limits are the fastest possible all-reduce, the hand-over of a
 * cache line and of a futex, a small message in one cache line, and a TCP stream over the loopback
 * interface; for one thread, the matrix products of a training step.
 */
#include "limit.h"
#include "limit_products.h"

#include "args.h"
#include "output.h"
#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_GOOD, EXIT_FAILED = 3 };

enum {
    WANT_ALL_REDUCE = 1,
    WANT_LINE = 2,
    WANT_FUTEX = 4,
    WANT_TCP = 8,
    WANT_PUSH = 16,
    WANT_PRODUCTS = 32
};

static const struct {
    const char *name;
    int bit;
} measurements[] = {{"all_reduce", WANT_ALL_REDUCE},
                    {"line", WANT_LINE},
                    {"futex", WANT_FUTEX},
                    {"push", WANT_PUSH},
                    {"tcp", WANT_TCP},
                    {"products", WANT_PRODUCTS}};

#define MEASUREMENTS (sizeof measurements / sizeof *measurements)

typedef struct limit_options {
    perf_sizes sizes;
    int iters, warmup, wanted;
    bool aliased;
    const char *model, *json;
    int batch;
} limit_options;

/* ---- The command line ---- */

static void take_step(const args_given *given)
{
    limit_options *o = given->out;
    args_size(given);
    o->sizes.factor = 1;
}

#define AT(member) ARGS_AT(limit_options, member)
#define DOC .flags = OPTION_DOC
static const args_row rows[] = {
    {"minbytes", 'b', "SIZE", "Smallest size, with suffix K, M, G or T (default 8)", args_size,
     AT(sizes.min)},
    {"maxbytes", 'e', "SIZE", "Largest size (default 64M)", args_size, AT(sizes.max)},
    {"stepbytes", 'i', "SIZE", "Add SIZE from one size to the next, instead of -f", take_step,
     AT(sizes.step), .least = 1},
    {"stepfactor", 'f', "N", "Multiply by N from one size to the next (default 8)", args_whole,
     AT(sizes.factor), .least = 2, .most = 1024},
    {"iters", 'n', "N", "Timed calls (default 50)", args_whole, AT(iters), .least = 1,
     .most = 1000000},
    {"warmup_iters", 'w', "N", "Calls before the timed calls (default 5)", args_whole, AT(warmup),
     .most = 1000000},
    {"aliased", 0, NULL, "Buffers exactly a power of two apart, which is slow on some CPUs",
     args_flag, AT(aliased)},
    {"model", 0, "NAME",
     "Network whose matrix products are timed, as in ringtrain --model (default mlp)", args_text,
     AT(model)},
    {"batch", 0, "N", "Samples of the training step (default 64)", args_whole, AT(batch),
     .least = 1, .most = 1000000},
    {"json", 0, "FILE", "Write a JSON object per line to FILE", args_text, AT(json)},
    {.help = "Measurements:"},
    {"all_reduce",
     .help = "Each thread adds half of both buffers and writes the sums to both; they meet once",
     DOC},
    {"line", .help = "Hand-over of a cache line from thread to thread", DOC},
    {"futex",
     .help = "Hand-over through the kernel: one thread wakes the other, which sleeps on a futex",
     DOC},
    {"push",
     .help = "A meeting: each thread pushes a cache line with a number, a signature and 8 or 40 "
             "bytes to the other, which checks the line and adds the bytes",
     DOC},
    {"tcp", .help = "A TCP stream over 127.0.0.1", DOC},
    {"products", .help = "Matrix products of the linear layers in a training step, one thread",
     DOC},
    {0},
};

static const char doc[] = "Measures the limits of this machine for two threads, and for a "
                          "training step of one thread. Without names, measures all of them."
                          "\vExit status: 0 good, 2 usage, 3 anything else.";

static int take_measurement(char **words, int count, void *out)
{
    limit_options *o = out;
    const char *names[MEASUREMENTS];
    (void)count;
    for (size_t i = 0; i < MEASUREMENTS; i++) {
        names[i] = measurements[i].name;
        if (words_alike(words[0], names[i])) {
            o->wanted |= measurements[i].bit;
            return 1;
        }
    }
    const char *nearest = words_nearest(words[0], names, MEASUREMENTS);
    args_fail("unknown measurement \"%s\"%s%s%s", words[0], nearest ? "; did you mean " : "",
              nearest ? nearest : "", nearest ? "?" : "");
}

static void parse(int argc, char **argv, limit_options *o)
{
    static const args_program ringlimit = {"ringlimit", rows,
                                           "[all_reduce] [line] [futex] [push] [tcp] [products]",
                                           doc, .take = take_measurement};
    *o = (limit_options){.sizes = {.min = 8, .max = 64 << 20, .factor = 8},
                         .iters = 50,
                         .warmup = 5,
                         .model = "mlp",
                         .batch = 64};
    args_parse(&ringlimit, argc, argv, o);
    if (o->sizes.min > o->sizes.max)
        args_fail("--minbytes %zu is above --maxbytes %zu", o->sizes.min, o->sizes.max);
    if (o->wanted == 0)
        o->wanted = ~0;
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

static void write_products(report *r)
{
    const limit_options *o = &r->options;
    const products_result result = limit_products(o->model, (size_t)o->batch, o->iters, o->warmup);
    const double gflops = result.flops / result.us * 1e-3;
    if (result.us < 0) {
        r->failed = true;
        return;
    }
    printf("# matrix products of a step, %s with %d sample%s : %.1f us, %.1f GFLOP/s\n", o->model,
           o->batch, plural(o->batch), result.us, gflops);
    if (r->json)
        fprintf(r->json,
                "{\"measurement\": \"products\", \"model\": \"%s\", \"batch\": %d, "
                "\"time_us\": %.9g, \"gflops\": %.9g}\n",
                o->model, o->batch, result.us, gflops);
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
              "may alias)"
            : "all_reduce of 2 threads, float sum in place, buffers an odd number of pages apart");
    for (size_t bytes = o->sizes.min; bytes <= o->sizes.max;
         bytes = perf_sizes_next(&o->sizes, bytes))
        write_sized(r, "all_reduce", bytes,
                    limit_all_reduce(bytes, o->iters, o->warmup, o->aliased, r->cores));
}

static void measure(report *r)
{
    const limit_options *o = &r->options;
    const bool two = r->cores.first != r->cores.second;
    const limit_cores same = {r->cores.first, r->cores.first};
    const char *across = two ? "across cores" : "on one core";
    printf("# ringlimit: two threads on cores %d and %d; median over calls of the slower thread's "
           "time\n",
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
    if (r->options.wanted & WANT_TCP) {
        print_columns("one way over one TCP connection through 127.0.0.1");
        for (size_t bytes = o->sizes.min; bytes <= o->sizes.max;
             bytes = perf_sizes_next(&o->sizes, bytes))
            write_sized(r, "tcp", bytes, limit_tcp_stream(bytes, o->iters, o->warmup, r->cores));
    }
    if (r->options.wanted & WANT_PRODUCTS)
        write_products(r);
}

int main(int argc, char **argv)
{
    report r = {.cores = limit_find_cores()};
    output_check_at_exit(EXIT_FAILED);
    parse(argc, argv, &r.options);
    if (r.options.json && (r.json = output_open(r.options.json)) == NULL) {
        fprintf(stderr, "ringlimit: --json %s: %s\n", r.options.json, strerror(errno));
        return EXIT_FAILED;
    }
    measure(&r);
    const bool kept = output_close(r.json, r.options.json);
    return r.failed || !kept ? EXIT_FAILED : EXIT_GOOD;
}
