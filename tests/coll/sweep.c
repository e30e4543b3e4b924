/* SPDX-License-Identifier: Apache-2.0
 *
 * The sweep: collectives × types × operations × counts × in place × buffers × data, on
 * communicators of 1 to 8 ranks, for one transport and one algorithm a run. Every rank
 * checks every element of its outputs, guard bytes around them, and that inputs are
 * unchanged out of place; all ranks compare their bits.
 *
 *     sweep --transport shm --algo ring [--mode sample|pairwise|full] [--ranks 2,4]
 */
#include "harness.h"
#include "oracle.h"

#include <argp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GUARD = 64, MAX_BLOCKS = 8 };
static const size_t large_count = 1 << 20;

typedef enum sweep_kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, KINDS } sweep_kind;
static const char *const kind_names[KINDS] = {"all_reduce", "reduce_scatter", "all_gather",
                                              "broadcast", "reduce"};

typedef struct sweep_options {
    const char *transport, *algo, *mode;
    int ranks[16], rank_count;
} sweep_options;

typedef struct sweep_case {
    sweep_kind kind;
    ring_dtype dtype;
    ring_op op;
    size_t count;
    bool in_place, shared;
    oracle_data data;
    int root;
} sweep_case;

/* ---- Buffers with guards ------------------------------------------------------------- */

typedef struct guarded {
    unsigned char *base;
    size_t bytes;
    bool shared;
} guarded;

static guarded guarded_new(size_t bytes, bool shared)
{
    guarded g = {.bytes = bytes, .shared = shared};
    void *base = NULL;
    if (shared) {
        if (ring_mem_alloc(&base, bytes + 2 * GUARD) != RING_OK)
            abort();
    } else {
        base = malloc(bytes + 2 * GUARD);
    }
    g.base = base;
    memset(g.base, 0xa5, bytes + 2 * GUARD);
    return g;
}

static void *guarded_at(const guarded *g)
{
    return g->base + GUARD;
}

static bool guarded_intact(const guarded *g)
{
    for (size_t i = 0; i < GUARD; i++)
        if (g->base[i] != 0xa5 || g->base[GUARD + g->bytes + i] != 0xa5)
            return false;
    return true;
}

static void guarded_free(guarded *g)
{
    if (g->shared)
        ring_mem_free(g->base);
    else
        free(g->base);
}

/* ---- One case -------------------------------------------------------------------------- */

typedef struct geometry {
    size_t total, src_first, src_count, dst_first, dst_count;
    size_t src_offset; /* of src inside dst, in place */
    bool checks_output;
} geometry;

static geometry geometry_of(const sweep_case *c, int rank, int ranks)
{
    const size_t block = (size_t)rank * c->count, all = (size_t)ranks * c->count;
    switch (c->kind) {
    case REDUCE_SCATTER:
        return (geometry){all, 0, all, block, c->count, 0, true};
    case ALL_GATHER:
        return (geometry){all, block, c->count, 0, all, block, true};
    default:
        return (geometry){c->count, 0, c->count, 0, c->count, 0,
                          c->kind != REDUCE || rank == c->root};
    }
}

static ring_status call_it(const sweep_case *c, const void *src, void *dst, ring_comm *comm)
{
    switch (c->kind) {
    case ALL_REDUCE:
        return ring_all_reduce(src, dst, c->count, c->dtype, c->op, comm, NULL);
    case REDUCE_SCATTER:
        return ring_reduce_scatter(src, dst, c->count, c->dtype, c->op, comm, NULL);
    case ALL_GATHER:
        return ring_all_gather(src, dst, c->count, c->dtype, comm, NULL);
    case BROADCAST:
        return ring_broadcast(src, dst, c->count, c->dtype, c->root, comm, NULL);
    default:
        return ring_reduce(src, dst, c->count, c->dtype, c->op, c->root, comm, NULL);
    }
}

static bool reduces(sweep_kind kind)
{
    return kind == ALL_REDUCE || kind == REDUCE_SCATTER || kind == REDUCE;
}

static oracle_case oracle_of(const sweep_case *c, int ranks, const char *algorithm, unsigned seed)
{
    return (oracle_case){
        .dtype = c->dtype, .op = c->op, .ranks = ranks, .data = c->data, .seed = seed,
        .order = strcmp(algorithm, "chain") == 0 ? ORACLE_RANK_ORDER : ORACLE_RING_ORDER,
        .total = c->count * (c->kind == REDUCE_SCATTER || c->kind == ALL_GATHER ? (size_t)ranks : 1),
        .block_count = c->kind == REDUCE_SCATTER ? c->count : 0,
    };
}

/* Collectives that only move: element i is the owner's input. */
static bool check_moved(const sweep_case *c, const oracle_case *o, const unsigned char *got,
                        size_t count)
{
    const size_t size = ring_dtype_size(c->dtype);
    for (size_t i = 0; i < count; i++) {
        unsigned char want[8];
        const int owner = c->kind == BROADCAST ? c->root : (int)(i / c->count);
        oracle_fill(o, owner, want, i, 1);
        if (memcmp(want, got + i * size, size) != 0) {
            fprintf(stderr, "element %zu is not the owner's\n", i);
            return false;
        }
    }
    return true;
}

/* Where all ranks hold the same vector each proves its share of it, and that all have the same
 * bits: the scalar oracle is the slow part. */
static bool same_on_all_ranks(const void *data, size_t bytes, int ranks, ring_comm *comm)
{
    uint64_t hashes[HARNESS_MAX_RANKS], mine = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        mine = (mine ^ ((const unsigned char *)data)[i]) * 1099511628211u; /* FNV-1a */
    if (ring_all_gather(&mine, hashes, 1, RING_UINT64, comm, NULL) != RING_OK)
        return false;
    for (int r = 0; r < ranks; r++)
        if (hashes[r] != mine)
            return false;
    return true;
}

static bool check_reduced(const sweep_case *c, const oracle_case *o, const unsigned char *got,
                          const geometry *g, int rank, ring_comm *comm)
{
    const size_t size = ring_dtype_size(c->dtype), ranks = (size_t)o->ranks;
    if (c->kind != ALL_REDUCE)
        return oracle_check(o, got, g->dst_first, g->dst_count) == g->dst_count;
    const size_t first = g->dst_count * (size_t)rank / ranks;
    const size_t count = g->dst_count * ((size_t)rank + 1) / ranks - first;
    const bool right = oracle_check(o, got + first * size, first, count) == count;
    return same_on_all_ranks(got, g->dst_count * size, o->ranks, comm) && right;
}

static bool inputs_unchanged(const oracle_case *o, int rank, const guarded *src,
                             const geometry *g, size_t size)
{
    unsigned char want[8];
    const unsigned char *have = guarded_at(src);
    for (size_t i = 0; i < g->src_count; i += 1 + g->src_count / 64) {
        oracle_fill(o, rank, want, g->src_first + i, 1);
        if (memcmp(want, have + i * size, size) != 0)
            return false;
    }
    return true;
}

static void print_case(const sweep_case *c, int rank, int ranks, const char *algorithm)
{
    fprintf(stderr, "rank %d of %d: %s %s %s count %zu root %d %s %s %s (algorithm %s)\n", rank,
            ranks, kind_names[c->kind], ring_dtype_name(c->dtype), ring_op_name(c->op), c->count,
            c->root, c->in_place ? "in place" : "out of place", c->shared ? "shared" : "plain",
            c->data == ORACLE_EXACT ? "exact" : "random", algorithm);
}

static int run_case(const sweep_case *c, int rank, int ranks, unsigned seed, ring_comm *comm)
{
    const size_t size = ring_dtype_size(c->dtype);
    const geometry g = geometry_of(c, rank, ranks);
    /* In place one buffer holds both: the larger of the two vectors. */
    const bool src_is_larger = g.src_count > g.dst_count;
    const size_t both = size * (src_is_larger ? g.src_count : g.dst_count);
    guarded src = guarded_new(c->in_place ? both : g.src_count * size, c->shared);
    guarded dst = c->in_place ? src : guarded_new(g.dst_count * size, c->shared);
    unsigned char *src_at = guarded_at(&src), *dst_at = guarded_at(&dst);
    if (c->in_place && c->kind == ALL_GATHER)
        src_at += g.src_offset * size;
    if (c->in_place && c->kind == REDUCE_SCATTER)
        dst_at += g.dst_first * size;
    oracle_case o = oracle_of(c, ranks, "ring", seed);
    oracle_fill(&o, rank, src_at, g.src_first, g.src_count);
    const ring_status status = call_it(c, src_at, dst_at, comm);
    ring_comm_info info = {.size = sizeof info};
    ring_comm_get_info(comm, &info);
    o = oracle_of(c, ranks, info.algorithm, seed);
    bool right = true;
    if (status == RING_OK && g.checks_output)
        right = reduces(c->kind) ? check_reduced(c, &o, dst_at, &g, rank, comm)
                                 : check_moved(c, &o, dst_at, g.dst_count);
    const bool intact = guarded_intact(&src) && guarded_intact(&dst);
    const bool same_inputs = c->in_place || inputs_unchanged(&o, rank, &src, &g, size);
    if (!c->in_place)
        guarded_free(&dst);
    guarded_free(&src);
    if (status == RING_OK && right && intact && same_inputs)
        return 0;
    print_case(c, rank, ranks, info.algorithm);
    fprintf(stderr, "  %s; %s; %s\n", status == RING_OK ? "returned ok" : ring_last_error(comm),
            intact ? "guards intact" : "wrote out of bounds",
            same_inputs ? "inputs unchanged" : "changed its input");
    return 1;
}

/* ---- Which cases --------------------------------------------------------------------------- */

static size_t counts_of(int ranks, size_t *counts)
{
    const size_t n = (size_t)ranks;
    const size_t all[] = {0, 1, n > 1 ? n - 1 : 2, n, n + 1, 17, 63, 65, 251, 1023, 1025, 4096,
                          10007, 65537, large_count};
    memcpy(counts, all, sizeof all);
    return sizeof all / sizeof *all;
}

/* The scalar oracle takes a second a million elements and eight ranks: the largest count is
 * for few ranks, and for none under a sanitizer. */
static sweep_case case_at(unsigned k, ring_dtype dtype, ring_op op, int ranks, bool small)
{
    size_t counts[32];
    const size_t number = counts_of(ranks, counts) - (small ? 2 : ranks > 4 ? 1 : 0);
    return (sweep_case){
        .kind = (sweep_kind)((k + k / 5 + (unsigned)op) % KINDS), .dtype = dtype, .op = op,
        .count = counts[(k * 7 + (unsigned)dtype) % number],
        .in_place = k / 2 % 2, .shared = (k + k / 3) % 2,
        .data = (k / 4 + (unsigned)op) % 2 ? ORACLE_RANDOM : ORACLE_EXACT,
        .root = (int)(k % (unsigned)ranks)};
}

/* Every pair (type, operation); the other factors walk with strides that pair them off over
 * types, operations and communicators. */
static int run_pairs(int rank, int ranks, ring_comm *comm, unsigned stride, bool small)
{
    unsigned k = (unsigned)ranks * 13;
    for (int dtype = 0; dtype < RING_DTYPE_COUNT; dtype++) {
        for (int op = 0; op < RING_OP_COUNT; op++, k++) {
            const sweep_case c = case_at(k, (ring_dtype)dtype, (ring_op)op, ranks, small);
            if (k % stride == 0 && run_case(&c, rank, ranks, k, comm) != 0)
                return 1;
        }
    }
    return 0;
}

static int run_full_type(int rank, int ranks, ring_comm *comm, ring_dtype dtype, ring_op op)
{
    size_t counts[32];
    const size_t number = counts_of(ranks, counts);
    for (unsigned k = 0; k < KINDS * number * 8; k++) {
        const sweep_case c = {
            .kind = (sweep_kind)(k % KINDS), .dtype = dtype, .op = op,
            .count = counts[k / KINDS % number],
            .in_place = k / KINDS / number % 2, .shared = k / KINDS / number / 2 % 2,
            .data = k / KINDS / number / 4 % 2 ? ORACLE_RANDOM : ORACLE_EXACT,
            .root = (int)(k % (unsigned)ranks)};
        const bool same_for_all_ops = !reduces(c.kind) && op != RING_SUM;
        const bool huge = c.count >= large_count && (op != RING_SUM || c.data == ORACLE_EXACT ||
                                                     c.kind == ALL_GATHER ||
                                                     c.kind == REDUCE_SCATTER);
        if (!same_for_all_ops && !huge && run_case(&c, rank, ranks, k, comm) != 0)
            return 1;
    }
    return 0;
}

static int run_full(int rank, int ranks, ring_comm *comm)
{
    for (int dtype = 0; dtype < RING_DTYPE_COUNT; dtype++)
        for (int op = 0; op < RING_OP_COUNT; op++)
            if (run_full_type(rank, ranks, comm, (ring_dtype)dtype, (ring_op)op) != 0)
                return 1;
    return 0;
}

/* The same call 20 times gives the same bits, on all ranks. */
static int run_repeated(int rank, int ranks, ring_comm *comm, harness_board *board)
{
    enum { COUNT = 10007, RUNS = 20 };
    float *x = NULL, *first = (float *)(void *)board->data;
    const oracle_case o = {.dtype = RING_FLOAT32, .op = RING_SUM, .ranks = ranks,
                           .data = ORACLE_RANDOM, .seed = 7, .total = COUNT};
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

static int sweep_rank(int rank, int ranks, harness_board *board, void *arg)
{
    const sweep_options *options = arg;
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    int failed;
    if (strcmp(options->mode, "full") == 0)
        failed = run_full(rank, ranks, comm);
    else
        failed = run_pairs(rank, ranks, comm, strcmp(options->mode, "sample") == 0 ? 5 : 1,
                           strcmp(options->mode, "sample") == 0);
    if (failed == 0)
        failed = run_repeated(rank, ranks, comm, board);
    ring_comm_destroy(comm);
    return failed;
}

/* ---- Options ---------------------------------------------------------------------------------- */

static void parse_ranks(sweep_options *options, char *list)
{
    options->rank_count = 0;
    for (char *word = strtok(list, ","); word != NULL && options->rank_count < 16;
         word = strtok(NULL, ","))
        options->ranks[options->rank_count++] = atoi(word);
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    sweep_options *options = state->input;
    switch (key) {
    case 't':
        options->transport = value;
        return 0;
    case 'a':
        options->algo = value;
        return 0;
    case 'm':
        options->mode = value;
        return 0;
    case 'r':
        parse_ranks(options, value);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    static const struct argp_option table[] = {
        {"transport", 't', "NAME", 0, "loop, shm, tcp", 0},
        {"algo", 'a', "NAME", 0, "ring, direct, chain", 0},
        {"mode", 'm', "MODE", 0, "sample, pairwise (default), full", 0},
        {"ranks", 'r', "LIST", 0, "default 1,2,3,4,5,7,8", 0},
        {0}};
    const struct argp argp = {table, parse, NULL, "Sweeps collectives against oracles.", NULL,
                              NULL, NULL};
    sweep_options options = {"loop", "ring", "pairwise", {1, 2, 3, 4, 5, 7, 8}, 7};
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    setenv("RING_TRANSPORT", options.transport, 1);
    setenv("RING_ALGO", options.algo, 1);
    int failed = 0;
    for (int i = 0; i < options.rank_count; i++) {
        const time_t started = time(NULL);
        const int wrong = harness_run(harness_kind_of(options.transport), options.ranks[i],
                                      sweep_rank, &options, NULL);
        printf("%s %s %d ranks: %s (%ld s)\n", options.transport, options.algo, options.ranks[i],
               wrong == 0 ? "ok" : "FAILED", (long)(time(NULL) - started));
        fflush(stdout);
        failed += wrong;
    }
    return failed != 0;
}
