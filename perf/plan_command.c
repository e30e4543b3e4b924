/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_command: builds all ranks' plans and hands them to the plan's readers: checker,
 * printer, cost model. The only file here that sees the library's insides, and of those the
 * plans alone.
 */
#include "plan_command.h"
#include "algo.h"
#include "numbers.h"
#include "perf_output.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

enum { EXIT_GOOD, EXIT_NOT_PROVEN, EXIT_USAGE, EXIT_FAILED };

#define MOST_RANKS 64 /* the checker's limit */
#define ELEMENT 4     /* float32 */

typedef struct request {
    plan_collective collective;
    const algo *algorithm;
    int ranks, root, chunks; /* root -1, chunks 0: not given */
    int per_host;            /* 0: all on one */
    plan_world world;
    int32_t host_of[MOST_RANKS];
    size_t bytes;
    bool steps, help;
    const char *trace;
} request;

static int usage(const char *format, ...) RING_PRINTF(1, 2);

static int usage(const char *format, ...)
{
    va_list args;
    fputs("ringperf plan: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs("; see ringperf plan --help\n", stderr);
    return EXIT_USAGE;
}

static void print_help(void)
{
    size_t count;
    const algo *all = algo_all(&count);
    puts("usage: ringperf plan COLLECTIVE --ranks N [options]\n\n"
         "Draws which ranks' data each chunk of each rank holds after every step, and proves that\n"
         "the plan is right.\n\n"
         "  --ranks N       1 to 64\n"
         "  --per-host N    ranks of a host; default: all are on one\n"
         "  --algo NAME     ring (default); all are below\n"
         "  --root R        of broadcast and reduce, 0\n"
         "  --chunks K      pieces of the vector; default: what the algorithm chooses for --bytes\n"
         "  --bytes SIZE    of the vector, 1M: for the chunks, the traffic and the trace\n"
         "  --steps         each rank's steps as text instead of the table\n"
         "  --trace FILE    a Chrome trace of all ranks at the cost model's times, instead\n\n"
         "algorithms:");
    for (size_t i = 0; i < count; i++)
        printf("  %-8s %s\n", all[i].name, all[i].about);
}

/* ---- The command line ---- */

static bool parse_value(int letter, const char *text, request *r)
{
    switch (letter) {
    case 'p':
        return perf_int_parse(text, 1, MOST_RANKS, &r->per_host);
    case 'n':
        return perf_int_parse(text, 1, MOST_RANKS, &r->ranks);
    case 'r':
        return perf_int_parse(text, 0, MOST_RANKS - 1, &r->root);
    case 'k':
        return perf_int_parse(text, 1, 1 << 16, &r->chunks);
    case 'a':
        r->algorithm = algo_find(text);
        return r->algorithm != NULL;
    case 'b':
        return perf_size_parse(text, &r->bytes);
    case 't':
        r->trace = text;
        return *text != '\0';
    case 's':
        r->steps = true;
        return true;
    default:
        r->help = true;
        return true;
    }
}

static int parse_options(int argc, char **argv, request *r)
{
    static const struct option longs[] = {
        {"ranks", required_argument, NULL, 'n'},    {"algo", required_argument, NULL, 'a'},
        {"root", required_argument, NULL, 'r'},     {"chunks", required_argument, NULL, 'k'},
        {"per-host", required_argument, NULL, 'p'}, {"bytes", required_argument, NULL, 'b'},
        {"steps", no_argument, NULL, 's'},          {"trace", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
    int letter, which = 0;
    optind = 0;
    while ((letter = getopt_long(argc, argv, "+:h", longs, &which)) != -1) {
        if (letter == '?' || letter == ':')
            return usage("%s: unknown option, or its value is missing", argv[optind - 1]);
        if (!parse_value(letter, optarg, r))
            return usage("--%s %s is not allowed", longs[which].name, optarg);
    }
    return optind < argc ? usage("unexpected word \"%s\"", argv[optind]) : EXIT_GOOD;
}

static bool parse_collective(const char *name, plan_collective *collective)
{
    *collective = plan_collective_find(name);
    return *collective < PLAN_BARRIER;
}

static void set_world(request *r)
{
    const int per_host = r->per_host > 0 ? r->per_host : r->ranks;
    for (int rank = 0; rank < r->ranks; rank++)
        r->host_of[rank] = rank / per_host;
    r->world = (plan_world){.ranks = r->ranks,
                            .hosts = (r->ranks - 1) / per_host + 1,
                            .host_of = r->host_of};
}

static int check_request(request *r)
{
    if (r->ranks == 0)
        return usage("--ranks is missing");
    set_world(r);
    if (r->root >= 0 && !plan_facts_of(r->collective)->rooted)
        return usage("%s has no root", plan_collective_name(r->collective));
    if (r->root < 0)
        r->root = 0;
    if (r->root >= r->ranks)
        return usage("--root %d is not below --ranks %d", r->root, r->ranks);
    if (!r->algorithm->supports(r->collective))
        return usage("%s has no %s", r->algorithm->name, plan_collective_name(r->collective));
    const int least = r->algorithm->chunks(r->collective, &r->world, 1);
    if (r->chunks == 0)
        r->chunks = r->algorithm->chunks(r->collective, &r->world, r->bytes);
    if (r->chunks % least != 0)
        return usage("--chunks %d is not a multiple of %d, as %s needs", r->chunks, least,
                     r->algorithm->name);
    return EXIT_GOOD;
}

static int parse_request(int argc, char **argv, request *r)
{
    *r = (request){.algorithm = algo_find("ring"), .root = -1, .bytes = 1 << 20};
    const char *first = argc > 1 ? argv[1] : "";
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
        r->help = true;
        return EXIT_GOOD;
    }
    if (!parse_collective(first, &r->collective))
        return usage(
            "\"%s\" is no collective: all_reduce, reduce_scatter, all_gather, broadcast or reduce",
            first);
    const int status = parse_options(argc - 1, argv + 1, r);
    return status != EXIT_GOOD || r->help ? status : check_request(r);
}

/* ---- The plans ---- */

static int failed(const char *doing)
{
    fprintf(stderr, "ringperf plan: %s: %s\n", doing, fail_text());
    return EXIT_FAILED;
}

static bool build_plans(const request *r, plan **plans)
{
    for (int rank = 0; rank < r->ranks; rank++) {
        plans[rank] = r->algorithm->build(
            &(algo_call){r->collective, &r->world, rank, r->root, r->chunks});
        if (!plans[rank])
            return false;
    }
    return true;
}

static int write_trace(const request *r, const plan *const *plans)
{
    /* Shared memory and tcp; a trace shows proportions, ringperf measures. */
    static const plan_prices prices = {.same_host = {.alpha = 0.4e-6,
                                                     .alpha_ref = 0.25e-6,
                                                     .beta = 1 / 8e9,
                                                     .gamma = 1 / 60e9,
                                                     .overhead = 0.2e-6,
                                                     .maps = true},
                                       .other_host = {.alpha = 9e-6,
                                                      .alpha_ref = 9e-6,
                                                      .beta = 1 / 2e9,
                                                      .gamma = 1 / 20e9,
                                                      .overhead = 1e-6}};
    FILE *out = fopen(r->trace, "we");
    if (!out) {
        fprintf(stderr, "ringperf plan: --trace %s: %s\n", r->trace, strerror(errno));
        return EXIT_FAILED;
    }
    const ring_status status = plan_print_trace(plans, &r->world, r->bytes / ELEMENT, ELEMENT,
                                                &prices, out);
    if (!output_close(out, "ringperf plan", r->trace))
        return EXIT_FAILED;
    if (status != RING_OK)
        return failed("drawing the trace");
    printf("trace: %s; open it in chrome://tracing or ui.perfetto.dev\n", r->trace);
    return EXIT_GOOD;
}

static int draw(const request *r, const plan *const *plans)
{
    if (r->trace && write_trace(r, plans) != EXIT_GOOD)
        return EXIT_FAILED;
    for (int rank = 0; r->steps && rank < r->ranks; rank++)
        plan_print_steps(plans[rank], stdout);
    if (r->trace || r->steps)
        return EXIT_GOOD;
    return plan_print_table(plans, r->ranks, stdout) == RING_OK ? EXIT_GOOD
                                                                : failed("drawing the table");
}

static void print_traffic(const request *r, const plan *const *plans)
{
    uint64_t most_bytes = 0, most_messages = 0;
    for (int rank = 0; rank < r->ranks; rank++) {
        uint64_t bytes, messages;
        plan_traffic(plans[rank], r->bytes / ELEMENT, ELEMENT, ELEMENT, &bytes, &messages);
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
        most_messages = messages > most_messages ? messages : most_messages;
    }
    printf("\na rank sends at most %llu messages and %llu bytes, %.4g of a vector of %zu bytes\n",
           (unsigned long long)most_messages, (unsigned long long)most_bytes,
           r->bytes ? (double)most_bytes / (double)r->bytes : 0.0, r->bytes);
}

static int prove(const request *r, const plan *const *plans)
{
    if (plan_check(plans, r->ranks) != RING_OK) {
        printf("NOT PROVEN: %s\n", fail_text());
        return EXIT_NOT_PROVEN;
    }
    printf("proven: every output chunk holds each contribution exactly once, in one order on all "
           "ranks;\nno step waits for ever, no chunk is read or overwritten too early\n");
    return EXIT_GOOD;
}

static void print_title(const request *r)
{
    printf("%s by %s, %d ranks", plan_collective_name(r->collective), r->algorithm->name, r->ranks);
    if (plan_facts_of(r->collective)->rooted)
        printf(", root %d", r->root);
    if (r->world.hosts > 1)
        printf(" on %d hosts", r->world.hosts);
    printf(", %d chunks\n\n", r->chunks);
}

static int show_plans(const request *r)
{
    plan *plans[MOST_RANKS] = {0};
    const plan *const *built = (const plan *const *)plans;
    int status = build_plans(r, plans) ? EXIT_GOOD : failed("building the plans");
    if (status == EXIT_GOOD) {
        print_title(r);
        status = draw(r, built);
    }
    if (status == EXIT_GOOD) {
        print_traffic(r, built);
        status = prove(r, built);
    }
    for (int rank = 0; rank < r->ranks; rank++)
        plan_free(plans[rank]);
    return status;
}

int plan_command(int argc, char **argv)
{
    request r;
    const int status = parse_request(argc, argv, &r);
    if (status != EXIT_GOOD)
        return status;
    if (!r.help)
        return show_plans(&r);
    print_help();
    return EXIT_GOOD;
}
