/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_command: builds the plans of all ranks, and passes them to the printer, the cost model and
 * the checker of the library. It includes internal headers of the library, but only those of plans
 * and algorithms.
 */
#include "plan_command.h"
#include "algo.h"
#include "args.h"
#include "output.h"
#include "perf_options.h"
#include "words.h"

#include <errno.h>
#include <string.h>

enum { EXIT_GOOD, EXIT_NOT_PROVEN, EXIT_FAILED = 3 };

#define MOST_RANKS 64 /* the checker's limit */
#define ELEMENT 4     /* bytes of a float32 */

typedef struct request {
    plan_collective collective;
    bool named;
    const algo *algorithm;   /* NULL: not given */
    int ranks, root, chunks; /* root -1 and chunks 0: not given */
    int per_host;            /* ranks of a host; 0: all ranks are on one host */
    plan_world world;
    int32_t host_of[MOST_RANKS];
    size_t bytes;
    bool steps;
    const char *trace;
} request;

/* ---- The command line ---- */

static void take_algorithm(const args_given *given)
{
    request *r = given->out;
    r->algorithm = algo_find(given->text);
    if (!r->algorithm)
        args_refuse(given, "unknown algorithm; --help lists them");
}

#define AT(member) ARGS_AT(request, member)
static const args_row rows[] = {
    {"ranks", 0, "N", "Number of ranks, 1 to 64", args_whole, AT(ranks), .least = 1,
     .most = MOST_RANKS},
    {"per-host", 0, "N", "Ranks per host (default: all ranks are on one host)", args_whole,
     AT(per_host), .least = 1, .most = MOST_RANKS},
    {"algo", 0, "NAME",
     "Algorithm from the list below (default: ring, or direct if ring has no such plan)",
     .take = take_algorithm},
    {"root", 0, "R", "Root of broadcast, reduce, gather or scatter (default 0)", args_whole,
     AT(root), .most = MOST_RANKS - 1},
    {"chunks", 0, "K", "Chunks of the vector (default: chosen by the algorithm for --bytes)",
     args_whole, AT(chunks), .least = 1, .most = 1 << 16},
    {"bytes", 0, "SIZE",
     "Size of the vector, for the chunks, the traffic and the trace (default 1M)", args_size,
     AT(bytes)},
    {"steps", 0, NULL, "Print each rank's steps as text instead of the table", args_flag,
     AT(steps)},
    {"trace", 0, "FILE",
     "Write a Chrome trace of all ranks' steps, with the cost model's times, instead of the table",
     args_text, AT(trace)},
    {.help = "Algorithms:"},
};

enum { ROWS = sizeof rows / sizeof *rows, MOST_ALGORITHMS = 16 };

static int take_collective(char **words, int count, void *out)
{
    request *r = out;
    (void)count;
    if (r->named)
        args_fail("unexpected word \"%s\"", words[0]);
    r->named = true;
    r->collective = plan_collective_find(perf_collective_given(words[0])->name);
    if (r->collective >= PLAN_BARRIER)
        args_fail("\"%s\" has no plan of its own; expected all_reduce, reduce_scatter, all_gather, "
                  "broadcast, reduce, gather, scatter, all_to_all, scan or exscan",
                  words[0]);
    return 1;
}

static void check_request(request *r)
{
    if (!r->named)
        args_fail("the collective is missing; for example: ringperf plan all_reduce --ranks 4");
    if (r->ranks == 0)
        args_fail("--ranks is missing; give the number of ranks, 1 to 64");
    const int per_host = r->per_host > 0 ? r->per_host : r->ranks;
    for (int rank = 0; rank < r->ranks; rank++)
        r->host_of[rank] = rank / per_host;
    r->world = (plan_world){.ranks = r->ranks,
                            .hosts = (r->ranks - 1) / per_host + 1,
                            .host_of = r->host_of};
    if (r->root >= 0 && !plan_facts_of(r->collective)->rooted)
        args_fail("%s has no root", plan_collective_name(r->collective));
    if (r->root < 0)
        r->root = 0;
    if (r->root >= r->ranks)
        args_fail("--root %d must be below --ranks %d", r->root, r->ranks);
    if (r->algorithm == NULL)
        r->algorithm = algo_find(plan_facts_of(r->collective)->personalized ? "direct" : "ring");
    if (!r->algorithm->supports(r->collective))
        args_fail("%s has no %s", r->algorithm->name, plan_collective_name(r->collective));
    const int least = r->algorithm->chunks(r->collective, &r->world, 1);
    if (r->chunks == 0)
        r->chunks = r->algorithm->chunks(r->collective, &r->world, r->bytes);
    if (r->chunks % least != 0)
        args_fail("--chunks %d must be a multiple of %d for %s", r->chunks, least,
                  r->algorithm->name);
}

static void parse_request(int argc, char **argv, request *r)
{
    args_row shown[ROWS + MOST_ALGORITHMS + 1] = {{0}};
    const args_program program = {"ringperf plan", shown, "COLLECTIVE --ranks N",
                                  "Draws the ranks whose data each chunk of each rank contains "
                                  "after every transfer, and proves that the plan is correct.",
                                  .take = take_collective};
    *r = (request){.root = -1, .bytes = 1 << 20};
    size_t count;
    const algo *all = algo_all(&count);
    memcpy(shown, rows, sizeof rows);
    for (size_t i = 0; i < count && i < MOST_ALGORITHMS; i++)
        shown[ROWS + i] = (args_row){.name = all[i].name,
                                     .help = all[i].about,
                                     .flags = OPTION_DOC};
    args_parse(&program, argc, argv, r);
    check_request(r);
}

/* ---- The plans ---- */

static int report_failure(const char *doing)
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

static int report_trace_failure(const request *r)
{
    fprintf(stderr, "ringperf plan: --trace %s: %s\n", r->trace, strerror(errno));
    return EXIT_FAILED;
}

static int write_trace(const request *r, const plan *const *plans)
{
    /* The prices of shared memory and TCP on one machine. A trace shows proportions; ringperf
     * measures times. */
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
    output_file out;
    if (!output_begin(&out, r->trace))
        return report_trace_failure(r);
    if (plan_print_trace(plans, &r->world, r->bytes / ELEMENT, ELEMENT, &prices, out.stream) !=
        RING_OK) {
        output_discard(&out);
        return report_failure("drawing the trace");
    }
    if (!output_finish(&out))
        return report_trace_failure(r);
    printf("wrote the trace %s; open it in chrome://tracing or ui.perfetto.dev\n", r->trace);
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
    return plan_print_table(plans, r->ranks, stdout) == RING_OK
               ? EXIT_GOOD
               : report_failure("drawing the table");
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
    printf(
        "\na rank sends at most %llu message%s and %llu byte%s, %.4g of a vector of %zu byte%s\n",
        (unsigned long long)most_messages, plural((double)most_messages),
        (unsigned long long)most_bytes, plural((double)most_bytes),
        r->bytes ? (double)most_bytes / (double)r->bytes : 0.0, r->bytes, plural(r->bytes));
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
    printf("%s by %s, %d rank%s", plan_collective_name(r->collective), r->algorithm->name, r->ranks,
           plural(r->ranks));
    if (plan_facts_of(r->collective)->rooted)
        printf(", root %d", r->root);
    if (r->world.hosts > 1)
        printf(" on %d host%s", r->world.hosts, plural(r->world.hosts));
    printf(", %d chunk%s\n\n", r->chunks, plural(r->chunks));
}

static int show_plans(const request *r)
{
    plan *plans[MOST_RANKS] = {0};
    const plan *const *built = (const plan *const *)plans;
    int status = build_plans(r, plans) ? EXIT_GOOD : report_failure("building the plans");
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
    parse_request(argc, argv, &r);
    return show_plans(&r);
}
