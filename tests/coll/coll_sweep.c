/* SPDX-License-Identifier: Apache-2.0
 *
 * The sweep: collectives × types × operations × counts × in place × buffers × data, on
 * communicators of 1 to 8 ranks, for one transport and one algorithm a run. See sweep.h.
 *
 *     sweep --transport shm --algo ring [--mode sample|pairwise|full] [--ranks 2,4]
 *           [--memory plain|registered|far|cuda] [--hosts 2] [--reproducible]
 */
#include "coll_sweep.h"
#include "args.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_COMMS = 16 };

typedef struct sweep_options {
    sweep_target target;
    sweep_mode mode;
    int ranks[MOST_COMMS], rank_count;
    sweep_cases cases;
} sweep_options;

/* The same call 20 times gives the same bits, on all ranks. */
static int run_repeated(int rank, int ranks, ring_comm *comm, harness_board *board)
{
    enum { COUNT = 10007, RUNS = 20 };
    float *x = NULL, *first = (float *)(void *)board->data;
    const oracle_case o = {.dtype = RING_FLOAT32,
                           .op = RING_SUM,
                           .ranks = ranks,
                           .data = ORACLE_RANDOM,
                           .seed = 7,
                           .total = COUNT};
    EXPECT_OK(ring_mem_alloc((void **)&x, COUNT * sizeof *x));
    for (int run = 0; run < RUNS; run++) {
        oracle_fill(&o, rank, x, 0, COUNT);
        EXPECT_OK(ring_all_reduce(x, x, COUNT, RING_FLOAT32, RING_SUM, comm, NULL));
        if (run == 0 && rank == 0)
            memcpy(first, x, COUNT * sizeof *x);
        EXPECT_OK(ring_barrier(comm, NULL));
        EXPECT(memcmp(first, x, COUNT * sizeof *x) == 0, "rank %d, run %d", rank, run);
    }
    return ring_mem_free(x) != RING_OK;
}

static int run_cases(const sweep_options *options, int rank, int ranks, ring_comm *comm)
{
    for (size_t i = 0; i < options->cases.count; i++) {
        const sweep_case *c = &options->cases.all[i];
        if (c->ranks == ranks && sweep_run(c, &options->target, rank, comm) != 0)
            return 1;
    }
    return 0;
}

static int sweep_rank(int rank, int ranks, harness_board *board, void *arg)
{
    const sweep_options *options = arg;
    ring_comm *comm;
    if (options->target.memory == SWEEP_CUDA)
        sweep_use_gpu(rank % options->target.devices);
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const int failed = run_cases(options, rank, ranks, comm) != 0 ||
                       run_repeated(rank, ranks, comm, board) != 0;
    ring_comm_destroy(comm);
    return failed;
}

/* ---- Options ---------------------------------------------------------------------------- */

static void take_ranks(const args_given *given)
{
    sweep_options *options = given->out;
    options->rank_count = 0;
    for (char *word = strtok(given->text, ","); word != NULL; word = strtok(NULL, ",")) {
        const int ranks = atoi(word);
        if (ranks < 1 || ranks > HARNESS_MAX_RANKS || options->rank_count == MOST_COMMS)
            args_refuse(given, "expected up to %d numbers from 1 to %d", MOST_COMMS,
                        HARNESS_MAX_RANKS);
        options->ranks[options->rank_count++] = ranks;
    }
}

static void take_memory(const args_given *given)
{
    const sweep_options *options = given->out;
    args_name(given);
    if (options->target.memory == SWEEP_FAR && !sweep_has_far())
        args_refuse(given, "far is in sweep_doubled");
}

static const char *const modes[] = {"sample", "pairwise", "full", NULL};
static const char *const memories[] = {"plain", "registered", "far", "cuda", NULL};

#define AT(member) ARGS_AT(sweep_options, member)
static const args_row rows[] = {
    {"transport", 't', "NAME", "loop (default), shm, tcp", args_text, AT(target.transport)},
    {"algo", 'a', "NAME", "ring (default), oneshot, direct, halving, tree, chain, hierarchical",
     args_text, AT(target.algorithm)},
    {"reproducible", 'R', NULL,
     "RING_REPRODUCIBLE=1: sums in the order of ranks, by default by any algorithm", args_flag,
     AT(target.reproducible)},
    {"mode", 'm', "MODE", "sample (drawn by RING_TEST_SEED), pairwise (default), full", args_name,
     AT(mode), .names = modes},
    {"memory", 'M', "KIND",
     "of buffers that are not shared: plain (default), registered, far, cuda", take_memory,
     AT(target.memory), .names = memories},
    {"hosts", 'H', "N", "pretended, on which ranks are in turn", args_whole, AT(target.hosts),
     .least = 1, .most = HARNESS_MAX_RANKS},
    {"wire", 'w', "NAME", "the transport between hosts; default: tcp", args_text, AT(target.wire)},
    {"stream", 's', NULL, "calls on a stream of the GPU", args_flag, AT(target.stream)},
    {"mixed", 'x', NULL, "but on every other rank", args_flag, AT(target.mixed)},
    {"by-host", 'b', NULL, "expect the host to drive calls on GPUs", args_flag, AT(target.by_host)},
    {"devices", 'd', "N", "GPUs that ranks use in turn", args_whole, AT(target.devices), .least = 1,
     .most = HARNESS_MAX_RANKS},
    {"ranks", 'r', "LIST", "default 1,2,3,4,5,7,8", .take = take_ranks},
    {0},
};

/* @return number of ranks that found something wrong. */
static int sweep_comm(sweep_options *options, int ranks)
{
    const sweep_target *target = &options->target;
    const time_t started = time(NULL);
    const int wrong = harness_run(harness_kind_of(target->transport), ranks, sweep_rank, options,
                                  NULL);
    printf("%s %s %d ranks: %s (%ld s)\n", target->transport, target->algorithm, ranks,
           wrong == 0 ? "ok" : "FAILED", (long)(time(NULL) - started));
    fflush(stdout);
    return wrong;
}

static void set_transports(const sweep_target *target)
{
    char hosts[16];
    snprintf(hosts, sizeof hosts, "%d", target->hosts);
    setenv("RING_TEST_HOSTS", hosts, 1);
    setenv("RING_TEST_WIRE", target->wire, 1);
    harness_use(target->transport);
}

int main(int argc, char **argv)
{
    static const args_program sweep = {"sweep", rows, NULL, "Sweeps collectives against oracles.",
                                       .take = NULL};
    sweep_options options = {
        .target = {.transport = "loop", .wire = "tcp", .hosts = 1, .devices = 1},
        .mode = SWEEP_PAIRWISE,
        .ranks = {1, 2, 3, 4, 5, 7, 8},
        .rank_count = 7};
    args_parse(&sweep, argc, argv, &options);
    set_transports(&options.target);
    if (options.target.algorithm == NULL)
        options.target.algorithm = options.target.reproducible ? "" : "ring";
    setenv("RING_ALGO", options.target.algorithm, 1);
    setenv("RING_REPRODUCIBLE", options.target.reproducible ? "1" : "0", 1);
    if (options.target.memory == SWEEP_CUDA &&
        harness_kind_of(options.target.transport) == HARNESS_THREADS)
        sweep_start_gpu();
    options.cases = sweep_list(options.mode, options.ranks, options.rank_count);
    printf("%zu cases\n", options.cases.count);
    int failed = 0;
    for (int i = 0; i < options.rank_count; i++)
        failed += sweep_comm(&options, options.ranks[i]);
    free(options.cases.all);
    return failed != 0;
}
