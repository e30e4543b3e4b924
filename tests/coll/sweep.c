/* SPDX-License-Identifier: Apache-2.0
 *
 * The sweep: collectives × types × operations × counts × in place × buffers × data, on
 * communicators of 1 to 8 ranks, for one transport and one algorithm a run. See sweep.h.
 *
 *     sweep --transport shm --algo ring [--mode sample|pairwise|full] [--ranks 2,4]
 *           [--memory plain|registered|far]
 */
#include "sweep.h"
#include "harness.h"

#include <argp.h>
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
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const int failed = run_cases(arg, rank, ranks, comm) != 0 ||
                       run_repeated(rank, ranks, comm, board) != 0;
    ring_comm_destroy(comm);
    return failed;
}

/* ---- Options ---------------------------------------------------------------------------- */

static void parse_ranks(sweep_options *options, char *list, struct argp_state *state)
{
    options->rank_count = 0;
    for (char *word = strtok(list, ","); word != NULL; word = strtok(NULL, ",")) {
        const int ranks = atoi(word);
        if (ranks < 1 || ranks > HARNESS_MAX_RANKS || options->rank_count == MOST_COMMS)
            argp_error(state, "--ranks: want up to %d numbers from 1 to %d", MOST_COMMS,
                       HARNESS_MAX_RANKS);
        options->ranks[options->rank_count++] = ranks;
    }
}

static sweep_mode parse_mode(const char *name, struct argp_state *state)
{
    static const char *const names[] = {"sample", "pairwise", "full"};
    for (int mode = SWEEP_SAMPLE; mode <= SWEEP_FULL; mode++)
        if (strcmp(name, names[mode]) == 0)
            return (sweep_mode)mode;
    argp_error(state, "--mode %s: want sample, pairwise or full", name);
    return SWEEP_PAIRWISE;
}

static sweep_memory parse_memory(const char *name, struct argp_state *state)
{
    static const char *const names[SWEEP_MEMORIES] = {"plain", "registered", "far"};
    for (int memory = 0; memory < SWEEP_MEMORIES; memory++)
        if (strcmp(name, names[memory]) == 0 && (memory != SWEEP_FAR || sweep_has_far()))
            return (sweep_memory)memory;
    argp_error(state, "--memory %s: want plain, registered%s", name,
               sweep_has_far() ? " or far" : ", or far in sweep_doubled");
    return SWEEP_PLAIN;
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    sweep_options *options = state->input;
    switch (key) {
    case 't':
        options->target.transport = value;
        return 0;
    case 'a':
        options->target.algorithm = value;
        return 0;
    case 'm':
        options->mode = parse_mode(value, state);
        return 0;
    case 'M':
        options->target.memory = parse_memory(value, state);
        return 0;
    case 'r':
        parse_ranks(options, value, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

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

int main(int argc, char **argv)
{
    static const struct argp_option table[] = {
        {"transport", 't', "NAME", 0, "loop (default), shm, tcp", 0},
        {"algo", 'a', "NAME", 0, "ring (default), oneshot, direct, halving, tree, chain", 0},
        {"mode", 'm', "MODE", 0, "sample, pairwise (default), full", 0},
        {"memory", 'M', "KIND", 0,
         "of buffers that are not shared: plain (default), registered, far", 0},
        {"ranks", 'r', "LIST", 0, "default 1,2,3,4,5,7,8", 0},
        {0}};
    const struct argp argp = {table, parse, NULL, "Sweeps collectives against oracles.",
                              NULL,  NULL,  NULL};
    sweep_options options = {.target = {.transport = "loop", .algorithm = "ring"},
                             .mode = SWEEP_PAIRWISE,
                             .ranks = {1, 2, 3, 4, 5, 7, 8},
                             .rank_count = 7};
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    setenv("RING_TRANSPORT", options.target.transport, 1);
    setenv("RING_ALGO", options.target.algorithm, 1);
    options.cases = sweep_list(options.mode, options.ranks, options.rank_count);
    printf("%zu cases\n", options.cases.count);
    int failed = 0;
    for (int i = 0; i < options.rank_count; i++)
        failed += sweep_comm(&options, options.ranks[i]);
    free(options.cases.all);
    return failed != 0;
}
