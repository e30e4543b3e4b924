/* SPDX-License-Identifier: Apache-2.0
 * Checks the values of NCCL's calls over libring, over the double of the driver: all functions,
 * types and operations. Usage: test_nccl_values MODE RANKS GPUS, where MODE is `one` (a thread has
 * all ranks), `threads` or `processes`. */
#include "nccl_team.h"

#include "draw.h"

#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

#ifdef __SANITIZE_THREAD__
static int type_step = 4;             /* it slows the double down */
enum { CALLS_ALLTOALL_IN_PLACE = 0 }; /* its data is undefined: ranks write blocks as others read */
#else
static int type_step = 1;
enum { CALLS_ALLTOALL_IN_PLACE = 1 };
#endif

static const char *mode;
static int ranks, gpus;

/* ---- Values -------------------------------------------------------------------------------- */

static const struct {
    size_t bytes;
    int exponent_bits, mantissa_bits; /* 0: an integer */
} types[ncclNumTypes] = {{1, 0, 0},  {1, 0, 0},  {4, 0, 0},   {4, 0, 0}, {8, 0, 0}, {8, 0, 0},
                         {2, 5, 10}, {4, 8, 23}, {8, 11, 52}, {2, 8, 7}, {1, 4, 3}, {1, 5, 2}};

/* Writes a small integer, which all types represent, as element @p i. */
static void put(unsigned char *array, size_t i, int type, int value)
{
    const int mantissa = types[type].mantissa_bits;
    uint64_t bits = (uint64_t)value;
    if (mantissa > 0 && value > 0) {
        const int exponent = 31 - __builtin_clz((unsigned)value);
        const int bias = (1 << (types[type].exponent_bits - 1)) - 1;
        const uint64_t scaled = ((uint64_t)value << mantissa) >> exponent;
        bits = (uint64_t)(exponent + bias) << mantissa | (scaled - (UINT64_C(1) << mantissa));
    }
    memcpy(array + i * types[type].bytes, &bits, types[type].bytes);
}

static int value_of(int rank, size_t i)
{
    return (int)(i + (size_t)rank) % 3;
}

/* Averages are of equal values, so that they are exact. */
static int given(ncclRedOp_t op, int rank, size_t i)
{
    return op == ncclAvg ? (int)(i % 5) : value_of(rank, i);
}

static int combined(const team *t, ncclRedOp_t op, size_t i)
{
    int all = given(op, 0, i);
    for (int r = 1; r < t->ranks && op != ncclAvg; r++) {
        const int next = given(op, r, i);
        all = op == ncclSum    ? all + next
              : op == ncclProd ? all * next
              : op == ncclMax  ? (next > all ? next : all)
                               : (next < all ? next : all);
    }
    return all;
}

/* Fills src of each rank with @p count elements, and dst with other bytes. */
static int fill(team *t, size_t count, int type, ncclRedOp_t op)
{
    for (team_rank *r = t->of; r < t->of + t->count; r++) {
        for (size_t i = 0; i < count; i++)
            put(r->host, i, type, given(op, r->rank, i));
        EXPECT(team_write(r, count * types[type].bytes) == 0, "rank %d", r->rank);
    }
    return 0;
}

typedef int (*expected)(const team *t, int rank, ncclRedOp_t op, size_t i);

/* Compares @p count elements at @p from of one rank. */
static int compare(const team *t, team_rank *r, CUdeviceptr from, size_t count, int type,
                   ncclRedOp_t op, expected value)
{
    unsigned char want[8];
    const size_t bytes = types[type].bytes;
    EXPECT(team_read(r, from, count * bytes) == 0, "rank %d", r->rank);
    for (size_t i = 0; i < count; i++) {
        put(want, 0, type, value(t, r->rank, op, i));
        EXPECT(memcmp(r->host + i * bytes, want, bytes) == 0,
               "rank %d of %d, type %d, operation %d, element %zu of %zu is not %d", r->rank,
               t->ranks, type, (int)op, i, count, value(t, r->rank, op, i));
    }
    return 0;
}

static int compare_all(team *t, size_t count, int type, ncclRedOp_t op, expected value)
{
    for (team_rank *r = t->of; r < t->of + t->count; r++)
        EXPECT(compare(t, r, r->dst, count, type, op, value) == 0, "rank %d", r->rank);
    return 0;
}

/* ---- Reductions ---------------------------------------------------------------------------- */

static int of_all(const team *t, int rank, ncclRedOp_t op, size_t i)
{
    return combined(t, op, i);
}

static int of_block(const team *t, int rank, ncclRedOp_t op, size_t i)
{
    return combined(t, op, (size_t)rank * TEAM_COUNT + i);
}

static int of_twice(const team *t, int rank, ncclRedOp_t op, size_t i)
{
    return 2 * combined(t, ncclSum, i);
}

/* ncclRedOpCreatePreMulSum() with the factor 2. */
static int premultiplied_sums(team *t)
{
    static const ncclDataType_t with[] = {ncclFloat16, ncclBfloat16, ncclFloat32, ncclFloat64};
    ncclRedOp_t ops[TEAM_MOST];
    unsigned char two[8];
    if (t->ranks == 1 || (gpus < t->ranks && strcmp(mode, "processes") == 0))
        return 0; /* the host drives these calls, and refuses the operation */
    for (size_t k = 0; k < sizeof with / sizeof *with; k++) {
        put(two, 0, with[k], 2);
        for (int i = 0; i < t->count; i++)
            EXPECT_NCCL(ncclRedOpCreatePreMulSum(&ops[i], two, with[k], ncclScalarHostImmediate,
                                                 t->of[i].comm));
        EXPECT(fill(t, 100, with[k], ncclSum) == 0, "type %d", with[k]);
        TEAM_CALL(t, ncclAllReduce(TEAM_SRC, TEAM_DST, 100, with[k], ops[r - t->of], r->comm,
                                   r->stream));
        EXPECT(compare_all(t, 100, with[k], ncclSum, of_twice) == 0, "type %d", with[k]);
        for (int i = 0; i < t->count; i++)
            EXPECT_NCCL(ncclRedOpDestroy(ops[i], t->of[i].comm));
    }
    EXPECT(ncclRedOpDestroy(ops[0], t->of[0].comm) == ncclInvalidArgument, "destroyed twice");
    EXPECT(ncclAllReduce((void *)(uintptr_t)t->of[0].src, (void *)(uintptr_t)t->of[0].dst, 1,
                         ncclFloat, ops[0], t->of[0].comm, t->of[0].stream) == ncclInvalidArgument,
           "a destroyed operation");
    EXPECT(ncclRedOpCreatePreMulSum(&ops[0], two, ncclInt32, ncclScalarHostImmediate,
                                    t->of[0].comm) == ncclInvalidUsage,
           "integers");
    return 0;
}

static int reductions(team *t)
{
    const int root = t->ranks - 1;
    for (int type = 0; type < ncclNumTypes; type += type_step)
        for (ncclRedOp_t op = ncclSum; op <= ncclAvg; op++) {
            const size_t count = op == ncclSum ? TEAM_COUNT : 77;
            EXPECT(fill(t, count, type, op) == 0, "type %d", type);
            TEAM_CALL(t, ncclAllReduce(TEAM_SRC, TEAM_DST, count, type, op, r->comm, r->stream));
            EXPECT(compare_all(t, count, type, op, of_all) == 0, "all_reduce");
            TEAM_CALL(t, ncclReduce(TEAM_SRC, r->rank == root ? TEAM_SRC : NULL, count, type, op,
                                    root, r->comm, r->stream));
            for (team_rank *r = t->of; r < t->of + t->count; r++)
                EXPECT(r->rank != root || compare(t, r, r->src, count, type, op, of_all) == 0,
                       "reduce in place");
            EXPECT(fill(t, (size_t)t->ranks * TEAM_COUNT, type, op) == 0, "type %d", type);
            TEAM_CALL(t, ncclReduceScatter(TEAM_SRC, TEAM_DST, TEAM_COUNT, type, op, r->comm,
                                           r->stream));
            EXPECT(compare_all(t, TEAM_COUNT, type, op, of_block) == 0, "reduce_scatter");
        }
    return premultiplied_sums(t);
}

/* ---- Calls that move ------------------------------------------------------------------------ */

static int of_root(const team *t, int rank, ncclRedOp_t op, size_t i)
{
    return value_of(t->ranks - 1, i);
}

static int of_gathered(const team *t, int rank, ncclRedOp_t op, size_t i)
{
    return value_of((int)(i / TEAM_COUNT), i % TEAM_COUNT);
}

static int of_exchange(const team *t, int rank, ncclRedOp_t op, size_t i)
{
    return value_of((int)(i / TEAM_COUNT), (size_t)rank * TEAM_COUNT + i % TEAM_COUNT);
}

static int of_scattered(const team *t, int rank, ncclRedOp_t op, size_t i)
{
    return value_of(t->ranks - 1, (size_t)rank * TEAM_COUNT + i);
}

static int of_neighbour(const team *t, int rank, ncclRedOp_t op, size_t i)
{
    return value_of((rank + t->ranks - 1) % t->ranks, i);
}

static int moves(team *t, int type)
{
    const int root = t->ranks - 1;
    const size_t all = (size_t)t->ranks * TEAM_COUNT;
    EXPECT(fill(t, all, type, ncclSum) == 0, "type %d", type);
    TEAM_CALL(t, ncclBroadcast(TEAM_SRC, TEAM_DST, TEAM_COUNT, type, root, r->comm, r->stream));
    EXPECT(compare_all(t, TEAM_COUNT, type, ncclSum, of_root) == 0, "broadcast");
    TEAM_CALL(t, ncclAllGather(TEAM_SRC, TEAM_DST, TEAM_COUNT, type, r->comm, r->stream));
    EXPECT(compare_all(t, all, type, ncclSum, of_gathered) == 0, "all_gather");
    TEAM_CALL(t, ncclAlltoAll(TEAM_SRC, TEAM_DST, TEAM_COUNT, type, r->comm, r->stream));
    EXPECT(compare_all(t, all, type, ncclSum, of_exchange) == 0, "alltoall");
    TEAM_CALL(t, ncclScatter(TEAM_SRC, TEAM_DST, TEAM_COUNT, type, root, r->comm, r->stream));
    EXPECT(compare_all(t, TEAM_COUNT, type, ncclSum, of_scattered) == 0, "scatter");
    TEAM_CALL(t, ncclGather(TEAM_SRC, TEAM_DST, TEAM_COUNT, type, root, r->comm, r->stream));
    for (team_rank *r = t->of; r < t->of + t->count; r++)
        EXPECT(r->rank != root || compare(t, r, r->dst, all, type, ncclSum, of_gathered) == 0,
               "gather");
    EXPECT_NCCL(ncclGroupStart());
    TEAM_CALL(t,
              ncclSend(TEAM_SRC, TEAM_COUNT, type, (r->rank + 1) % t->ranks, r->comm, r->stream));
    TEAM_CALL(t, ncclRecv(TEAM_DST, TEAM_COUNT, type, (r->rank + t->ranks - 1) % t->ranks, r->comm,
                          r->stream));
    EXPECT_NCCL(ncclGroupEnd());
    EXPECT(compare_all(t, TEAM_COUNT, type, ncclSum, of_neighbour) == 0, "send and recv");
    return 0;
}

/* Data of an alltoall in place is undefined, but that of the call after it is right. */
static int moves_in_place(team *t)
{
    const int type = ncclInt32, root = t->ranks - 1;
    if (CALLS_ALLTOALL_IN_PLACE)
        TEAM_CALL(t, ncclAlltoAll(TEAM_SRC, TEAM_SRC, TEAM_COUNT, type, r->comm, r->stream));
    EXPECT(fill(t, TEAM_COUNT, type, ncclSum) == 0, "fill");
    TEAM_CALL(t, ncclBcast(TEAM_SRC, TEAM_COUNT, type, root, r->comm, r->stream));
    for (team_rank *r = t->of; r < t->of + t->count; r++)
        EXPECT(compare(t, r, r->src, TEAM_COUNT, type, ncclSum, of_root) == 0, "bcast");
    return 0;
}

/* ---- Streams and graphs --------------------------------------------------------------------- */

/* Calls on two streams, without a stream, of no elements, and several in one group. */
static int streams(team *t)
{
    /* Calls of threads in one stream would wait for each other, and theirs is one if they share a
     * GPU: only a group of calls may use it. */
    const bool own_default = gpus >= t->ranks || strcmp(mode, "threads") != 0;
    EXPECT(fill(t, TEAM_COUNT, ncclFloat, ncclSum) == 0, "fill");
    TEAM_CALL(t, ncclAllReduce(NULL, NULL, 0, ncclFloat, ncclSum, r->comm, r->stream));
    TEAM_CALL(t, ncclAllReduce(TEAM_SRC, TEAM_DST, 10, ncclFloat, ncclMax, r->comm, r->other));
    TEAM_CALL(t, ncclAllReduce(TEAM_SRC, TEAM_DST, TEAM_COUNT, ncclFloat, ncclMin, r->comm,
                               own_default ? NULL : r->stream));
    for (team_rank *r = t->of; r < t->of + t->count; r++) {
        team_use(r);
        EXPECT_CUDA(team_cuda.stream_synchronize(r->other));
        EXPECT_CUDA(team_cuda.stream_synchronize((CUstream)(uintptr_t)1));
    }
    EXPECT(compare_all(t, TEAM_COUNT, ncclFloat, ncclMin, of_all) == 0, "the default stream");
    EXPECT_NCCL(ncclGroupStart());
    for (int i = 0; i < 3; i++)
        TEAM_CALL(t, ncclAllReduce(TEAM_SRC, TEAM_DST, TEAM_COUNT - i, ncclFloat, ncclSum, r->comm,
                                   r->stream));
    EXPECT_NCCL(ncclGroupEnd());
    EXPECT(compare_all(t, TEAM_COUNT, ncclFloat, ncclSum, of_all) == 0, "a group of calls");
    return 0;
}

static int graphs(team *t)
{
    CUgraph graph;
    CUgraphExec exec[TEAM_MOST];
    if (gpus < t->ranks)
        return 0; /* calls of ranks that share a GPU cannot be captured */
    EXPECT(fill(t, TEAM_COUNT, ncclInt32, ncclSum) == 0, "fill");
    for (team_rank *r = t->of; r < t->of + t->count; r++) {
        team_use(r);
        EXPECT_CUDA(team_cuda.begin_capture(r->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    }
    TEAM_CALL(t, ncclAllReduce(TEAM_SRC, TEAM_DST, TEAM_COUNT, ncclInt32, ncclSum, r->comm,
                               r->stream));
    if (CALLS_ALLTOALL_IN_PLACE)
        TEAM_CALL(t, ncclAlltoAll(TEAM_SRC, TEAM_SRC, TEAM_COUNT, ncclInt32, r->comm, r->stream));
    for (int i = 0; i < t->count; i++) {
        team_use(&t->of[i]);
        EXPECT_CUDA(team_cuda.end_capture(t->of[i].stream, &graph));
        EXPECT_CUDA(team_cuda.graph_instantiate(&exec[i], graph, 0));
        EXPECT_CUDA(team_cuda.graph_destroy(graph));
    }
    for (int k = 0; k < 10; k++) {
        for (int i = 0; i < t->count; i++)
            EXPECT_CUDA(team_cuda.graph_launch(exec[i], t->of[i].stream));
        EXPECT(compare_all(t, TEAM_COUNT, ncclInt32, ncclSum, of_all) == 0, "replay %d", k);
        EXPECT(fill(t, TEAM_COUNT, ncclInt32, ncclSum) == 0, "fill");
    }
    for (int i = 0; i < t->count; i++)
        EXPECT_CUDA(team_cuda.graph_exec_destroy(exec[i]));
    return 0;
}

/* ---- Communicators -------------------------------------------------------------------------- */

static int queries(const team *t)
{
    for (const team_rank *r = t->of; r < t->of + t->count; r++) {
        int count = -1, rank = -1, device = -1;
        void *handle = NULL, *memory = NULL;
        EXPECT_NCCL(ncclCommCount(r->comm, &count));
        EXPECT_NCCL(ncclCommUserRank(r->comm, &rank));
        EXPECT_NCCL(ncclCommCuDevice(r->comm, &device));
        EXPECT(count == t->ranks && rank == r->rank && device == r->rank % gpus, "%d %d %d", count,
               rank, device);
        team_use(r);
        EXPECT_NCCL(ncclMemAlloc(&memory, 4096));
        EXPECT_NCCL(ncclCommRegister(r->comm, memory, 4096, &handle));
        EXPECT(handle != NULL, "no handle");
        EXPECT_NCCL(ncclCommDeregister(r->comm, handle));
        EXPECT_NCCL(ncclMemFree(memory));
    }
    return 0;
}

/* Makes the ranks' parts a team of their own, whose sums are right. */
static int use_parts(team *t, ncclComm_t *parts, int size)
{
    team part = *t;
    part.ranks = size;
    part.count = 0;
    for (int i = 0; i < t->count; i++)
        if (parts[i] != NULL) {
            part.of[part.count] = t->of[i];
            part.of[part.count++].comm = parts[i];
        }
    EXPECT(team_await(&part) == 0, "a part of %d", size);
    for (int i = 0; i < part.count; i++)
        EXPECT_NCCL(ncclCommUserRank(part.of[i].comm, &part.of[i].rank));
    EXPECT(fill(&part, 500, ncclFloat, ncclSum) == 0, "fill");
    TEAM_CALL(&part,
              ncclAllReduce(TEAM_SRC, TEAM_DST, 500, ncclFloat, ncclSum, r->comm, r->stream));
    EXPECT(compare_all(&part, 500, ncclFloat, ncclSum, of_all) == 0, "a part of %d", size);
    for (int i = 0; i < part.count; i++)
        EXPECT_NCCL(ncclCommDestroy(part.of[i].comm));
    return 0;
}

/* All ranks but the last, by ncclCommSplit() in a group and by ncclCommShrink(). */
static int parts(team *t)
{
    ncclComm_t of[TEAM_MOST] = {NULL};
    int last = t->ranks - 1;
    TEAM_CALL(t, ncclCommSplit(r->comm, r->rank == last && last > 0 ? NCCL_SPLIT_NOCOLOR : 7, 0,
                               &of[r - t->of], NULL));
    for (int i = 0; i < t->count; i++)
        EXPECT((of[i] == NULL) == (t->of[i].rank == last && last > 0), "rank %d", t->of[i].rank);
    EXPECT(use_parts(t, of, last > 0 ? last : 1) == 0, "split");
    if (last == 0 || t->count > 1)
        return 0; /* ncclCommShrink() of several ranks of a thread blocks */
    of[0] = NULL;
    if (t->of[0].rank != last)
        EXPECT_BEGUN(ncclCommShrink(t->of[0].comm, &last, 1, &of[0], NULL, NCCL_SHRINK_DEFAULT));
    return use_parts(t, of, last);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

static int all_calls(team *t)
{
    EXPECT(queries(t) == 0, "queries");
    EXPECT(reductions(t) == 0, "reductions");
    for (int type = 0; type < ncclNumTypes; type += type_step)
        EXPECT(moves(t, type) == 0, "moves of type %d", type);
    EXPECT(moves_in_place(t) == 0, "moves in place");
    EXPECT(streams(t) == 0, "streams");
    EXPECT(graphs(t) == 0, "graphs");
    EXPECT(parts(t) == 0, "parts");
    for (int i = 0; i < t->count; i++)
        EXPECT_BEGUN(ncclCommFinalize(t->of[i].comm));
    return team_await(t);
}

static int body(int rank, int count, harness_board *board, void *arg)
{
    team t;
    const bool one = strcmp(mode, "one") == 0;
    EXPECT(team_open(&t, rank, one ? ranks : 1, ranks, gpus) == 0, "rank %d", rank);
    EXPECT(team_join(&t, team_id(rank, board), arg) == 0, "rank %d", rank);
    EXPECT(all_calls(&t) == 0, "rank %d", rank);
    return team_close(&t);
}

static void run(ncclConfig_t *config)
{
    const bool one = strcmp(mode, "one") == 0, threads = strcmp(mode, "threads") == 0;
    assert_int_equal(harness_run_apart(threads ? "loop" : "shm", one ? 1 : ranks, body, config,
                                       team_start),
                     0);
}

static void calls_are_right(void **state)
{
    run(NULL);
}

static void calls_are_right_without_blocking(void **state)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.maxCTAs = 8;
    run(&config);
}

static int all_at_once(int rank, int count, harness_board *board, void *arg)
{
    team t;
    ncclComm_t comms[TEAM_MOST];
    int devices[TEAM_MOST];
    EXPECT(team_open(&t, 0, ranks, ranks, gpus) == 0, "open");
    for (int i = 0; i < ranks; i++)
        devices[i] = i % gpus;
    EXPECT_NCCL(ncclCommInitAll(comms, ranks, devices));
    for (int i = 0; i < ranks; i++)
        t.of[i].comm = comms[i];
    EXPECT(queries(&t) == 0 && moves(&t, ncclFloat) == 0, "calls");
    return team_close(&t);
}

static void one_call_makes_all_communicators(void **state)
{
    if (strcmp(mode, "one") != 0)
        skip_because("one thread has all ranks of ncclCommInitAll()");
    assert_int_equal(harness_run(HARNESS_PROCESSES, 1, all_at_once, NULL, NULL), 0);
}

/* Kernels, copies, words, events and host functions begin late, by delays that are drawn, and
 * threads of blocks run in drawn orders. */
static void calls_are_right_when_streams_are_late(void **state)
{
    enum { SEEDS = 3 };
    uint64_t draws = test_seed();
    char number[16];
    setenv("FAKE_CUDA_ORDER", "2", 1);
    for (int k = 0; k < SEEDS; k++) {
        snprintf(number, sizeof number, "%u", test_draw(&draws, 1000000));
        setenv("FAKE_CUDA_SEED", number, 1);
        snprintf(number, sizeof number, "%u", 100 + test_draw(&draws, 2000));
        setenv("FAKE_CUDA_DELAY", number, 1);
        run(NULL);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest late[] = {cmocka_unit_test(calls_are_right_when_streams_are_late)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_right),
        cmocka_unit_test(calls_are_right_without_blocking),
        cmocka_unit_test(one_call_makes_all_communicators),
    };
    if (argc < 4 || argc > 5)
        return 2;
    mode = argv[1];
    ranks = atoi(argv[2]);
    gpus = atoi(argv[3]);
    if (argc == 5) {
        type_step = 5;
        return cmocka_run_group_tests(late, NULL, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
