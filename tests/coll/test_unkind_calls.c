/* SPDX-License-Identifier: Apache-2.0
 * Tests calls on memory of a GPU over a double that is as unkind as a GPU: copies end after their
 * calls, they share a few hardware queues, and calls of the driver block, some with its lock held.
 * Each run has a process of its own, which ends at the double's deadline if a call hangs.
 * Usage: test_coll_unkind_calls TEST [TRANSPORT]; the double's environment is the caller's. */
#include "harness.h"

#include "doubles/cuda/cuda_table.h"
#include "doubles/cuda/sample_kernels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

enum { COUNT = 10000, BYTES = COUNT * 4, ROUNDS = 12, REPLAYS = 200, RANKS_MOST = 4 };

static const char *transport;
static cuda_table cu;

/* ---- A rank ------------------------------------------------------------------------------- */

typedef struct player {
    int rank, ranks;
    unsigned seed;
    ring_comm *comm;
    CUcontext context;
    CUmodule module;
    CUfunction add;
    CUstream streams[2];
    CUdeviceptr src, dst, spare;
    int32_t *in, *out; /* pinned; ROUNDS times COUNT */
} player;

static void load_driver(void)
{
    cu = cuda_functions();
}

static int start_gpu(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_driver);
    EXPECT_CUDA(cu.init(0));
    return 0;
}

static int sit_down(player *p, int rank, int ranks, harness_board *board)
{
    *p = (player){.rank = rank, .ranks = ranks, .seed = (unsigned)rank + 1};
    const char *gpus = getenv("FAKE_CUDA_DEVICES");
    EXPECT(start_gpu() == 0, "no GPU");
    EXPECT_CUDA(cu.primary_retain(&p->context, gpus != NULL ? rank % atoi(gpus) : 0));
    EXPECT_CUDA(cu.set_current(p->context));
    EXPECT_OK(harness_join(rank, ranks, board, &p->comm));
    for (int i = 0; i < 2; i++)
        EXPECT_CUDA(cu.stream_create(&p->streams[i], CU_STREAM_NON_BLOCKING, 0));
    EXPECT_CUDA(cu.module_load(&p->module, "RINGEMU"));
    EXPECT_CUDA(cu.module_get_function(&p->add, p->module, "sample_add"));
    EXPECT_CUDA(cu.mem_alloc(&p->src, BYTES));
    EXPECT_CUDA(cu.mem_alloc(&p->dst, BYTES));
    EXPECT_CUDA(cu.mem_alloc(&p->spare, BYTES));
    EXPECT_CUDA(cu.host_alloc((void **)&p->in, (size_t)ROUNDS * BYTES, 0));
    EXPECT_CUDA(cu.host_alloc((void **)&p->out, (size_t)ROUNDS * BYTES, 0));
    EXPECT_OK(ring_barrier(p->comm, NULL));
    return 0;
}

static int leave(player *p)
{
    EXPECT_OK(ring_barrier(p->comm, NULL));
    ring_comm_destroy(p->comm);
    for (int i = 0; i < 2; i++)
        EXPECT_CUDA(cu.stream_destroy(p->streams[i]));
    return 0;
}

static int32_t element(int rank, int round, int i)
{
    return i % 1000 + rank * 7 + round * 3;
}

static int expect_sum(const player *p, const int32_t *got, int count, int round)
{
    for (int i = 0; i < count; i++) {
        int32_t sum = 0;
        for (int r = 0; r < p->ranks; r++)
            sum += element(r, round, i);
        EXPECT(got[i] == sum, "wrong values: rank %d, round %d, element %d of %d: %d, not %d",
               p->rank, round, i, count, got[i], sum);
    }
    return 0;
}

/* @param stream  NULL: the call has no stream. */
static ring_status sum(player *p, CUstream stream, int count)
{
    ring_call call = RING_CALL_INIT;
    call.stream = stream;
    return ring_all_reduce((void *)(uintptr_t)p->src, (void *)(uintptr_t)p->dst, (size_t)count,
                           RING_INT32, RING_SUM, p->comm, &call);
}

static void delay(player *p)
{
    usleep((unsigned)rand_r(&p->seed) % 4000);
}

/* ---- Runs --------------------------------------------------------------------------------- */

static void run(int ranks, harness_body body)
{
    assert_int_equal(harness_run_apart(transport, ranks, body, NULL, start_gpu), 0);
}

/* ---- Without a stream ---------------------------------------------------------------------- */

/* As programs do: cudaMemcpy from pageable memory and cudaMemset, then the call. */
static int after_copies(int rank, int ranks, harness_board *board, void *arg)
{
    static _Thread_local int32_t host[COUNT];
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    for (int round = 0; round < ROUNDS; round++) {
        const int count = COUNT - 16 * round;
        for (int i = 0; i < count; i++)
            host[i] = element(rank, round, i);
        EXPECT_CUDA(cu.copy(p.src, (uintptr_t)host, sizeof host));
        EXPECT_CUDA(cu.set_bytes(p.dst, 0xa5, sizeof host));
        EXPECT_OK(sum(&p, NULL, count));
        EXPECT_CUDA(cu.copy((uintptr_t)host, p.dst, sizeof host));
        EXPECT(expect_sum(&p, host, count, round) == 0, "rank %d", rank);
    }
    return leave(&p);
}

static void late_copies(void **state)
{
    run(2, after_copies);
}

/* ---- In streams ---------------------------------------------------------------------------- */

/* Copies, calls of ever new counts, and copies of their results: nothing is waited for. */
static int in_a_row(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    for (int i = 0; i < ROUNDS * COUNT; i++)
        p.in[i] = element(rank, i / COUNT, i % COUNT);
    for (int round = 0; round < ROUNDS; round++) {
        CUstream stream = p.streams[round / 2 % 2];
        const int count = COUNT - 512 * round;
        if (round > 0 && round % 2 == 0) /* the buffers are used again by the other stream */
            EXPECT_CUDA(cu.stream_synchronize(p.streams[1 - round / 2 % 2]));
        delay(&p);
        EXPECT_CUDA(cu.copy_async(p.src, (uintptr_t)(p.in + round * COUNT), BYTES, stream));
        EXPECT_OK(sum(&p, stream, count));
        EXPECT_CUDA(cu.copy_async((uintptr_t)(p.out + round * COUNT), p.dst, BYTES, stream));
    }
    for (int i = 0; i < 2; i++)
        EXPECT_CUDA(cu.stream_synchronize(p.streams[i]));
    for (int round = 0; round < ROUNDS; round++)
        EXPECT(expect_sum(&p, p.out + round * COUNT, COUNT - 512 * round, round) == 0, "rank %d",
               rank);
    return leave(&p);
}

static void calls_in_streams(void **state)
{
    run(4, in_a_row);
}

/* The program copies nothing while calls wait, for a copy after a call would hold up another rank's
 * copy before it where queues are few. Kernels change src between the calls. */
static int between_kernels_in_a_row(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    sample_add three = {.words = (void *)(uintptr_t)p.src, .count = COUNT, .value = 3};
    void *parameters[] = {&three};
    for (int i = 0; i < COUNT; i++)
        p.in[i] = element(rank, 0, i);
    EXPECT_CUDA(cu.copy_async(p.src, (uintptr_t)p.in, BYTES, p.streams[0]));
    EXPECT_CUDA(cu.stream_synchronize(p.streams[0]));
    EXPECT_OK(ring_barrier(p.comm, NULL));
    for (int round = 0; round < ROUNDS; round++) {
        delay(&p);
        EXPECT_OK(sum(&p, p.streams[0], COUNT - 512 * round));
        EXPECT_CUDA(cu.launch(p.add, 1, 1, 1, 1, 1, 1, 0, p.streams[0], parameters, NULL));
    }
    EXPECT_CUDA(cu.stream_synchronize(p.streams[0]));
    EXPECT_OK(ring_barrier(p.comm, NULL));
    EXPECT_CUDA(cu.copy_async((uintptr_t)p.out, p.dst, BYTES, p.streams[0]));
    EXPECT_CUDA(cu.stream_synchronize(p.streams[0]));
    const int last = ROUNDS - 1;
    EXPECT(expect_sum(&p, p.out, COUNT - 512 * last, last) == 0, "rank %d", rank);
    return leave(&p);
}

static void calls_between_kernels(void **state)
{
    run(4, between_kernels_in_a_row);
}

/* ---- Graphs ------------------------------------------------------------------------------- */

/* Many replays are asked for at once. A call that cannot be captured must be refused. */
static int replayed(int rank, int ranks, harness_board *board, void *arg)
{
    enum { SHORT = 100 };
    CUgraph graph;
    CUgraphExec exec;
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    for (int i = 0; i < SHORT; i++)
        p.in[i] = element(rank, 0, i);
    EXPECT_CUDA(cu.begin_capture(p.streams[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    const ring_status status = sum(&p, p.streams[0], SHORT);
    const CUresult end = cu.end_capture(p.streams[0], &graph);
    EXPECT(status == RING_OK || status == RING_ERR_UNSUPPORTED, "%s", ring_last_error(NULL));
    if (status != RING_OK)
        return leave(&p);
    EXPECT_CUDA(end);
    EXPECT_CUDA(cu.graph_instantiate(&exec, graph, 0));
    EXPECT_CUDA(cu.graph_destroy(graph));
    EXPECT_CUDA(cu.copy_async(p.src, (uintptr_t)p.in, SHORT * 4, p.streams[0]));
    for (int i = 0; i < REPLAYS; i++)
        EXPECT_CUDA(cu.graph_launch(exec, p.streams[0]));
    EXPECT_CUDA(cu.copy_async((uintptr_t)p.out, p.dst, SHORT * 4, p.streams[0]));
    EXPECT_CUDA(cu.stream_synchronize(p.streams[0]));
    EXPECT(expect_sum(&p, p.out, SHORT, 0) == 0, "rank %d", rank);
    EXPECT_OK(ring_barrier(p.comm, NULL));
    EXPECT_CUDA(cu.graph_exec_destroy(exec));
    return leave(&p);
}

static void replays(void **state)
{
    run(2, replayed);
}

/* ---- Calls of the driver that wait -------------------------------------------------------- */

static int meet(harness_board *board, int counter, int ranks)
{
    atomic_fetch_add(&board->counters[counter], 1);
    EXPECT(harness_await(board, counter, ranks), "a rank is late");
    return 0;
}

/* Each rank frees and allocates memory while its stream is at a call that all ranks have made. No
 * rank makes its next call before that: the free of another would wait for its stream. */
static int freed(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    for (int round = 0; round < ROUNDS; round++) {
        int32_t *out = p.out + round * COUNT;
        for (int i = 0; i < COUNT; i++)
            p.in[i] = element(rank, round, i);
        EXPECT_CUDA(cu.copy_async(p.src, (uintptr_t)p.in, BYTES, p.streams[0]));
        EXPECT_OK(sum(&p, p.streams[0], COUNT - round));
        EXPECT_CUDA(cu.copy_async((uintptr_t)out, p.dst, BYTES, p.streams[0]));
        EXPECT(meet(board, 2 * round, ranks) == 0, "before round %d's frees", round);
        EXPECT_CUDA(cu.mem_free(p.spare));
        EXPECT_CUDA(cu.mem_alloc(&p.spare, BYTES));
        EXPECT_CUDA(cu.stream_synchronize(p.streams[0]));
        EXPECT(meet(board, 2 * round + 1, ranks) == 0, "after round %d's frees", round);
        EXPECT(expect_sum(&p, out, COUNT - round, round) == 0, "rank %d", rank);
    }
    return leave(&p);
}

static void frees(void **state)
{
    run(2, freed);
}

/* ---- Synchronous launches ----------------------------------------------------------------- */

/* Kernels of the program come before and after each call. */
static int between_kernels(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    sample_add one = {.words = (void *)(uintptr_t)p.src, .count = COUNT, .value = 1};
    void *parameters[] = {&one};
    for (int i = 0; i < COUNT; i++)
        p.in[i] = element(rank, 0, i) - 1;
    for (int round = 0; round < ROUNDS; round++) {
        CUstream stream = p.streams[round % 2];
        EXPECT_CUDA(cu.copy_async(p.src, (uintptr_t)p.in, BYTES, stream));
        EXPECT_CUDA(cu.launch(p.add, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
        EXPECT_OK(sum(&p, stream, COUNT));
        EXPECT_CUDA(cu.copy_async((uintptr_t)p.out, p.dst, BYTES, stream));
        EXPECT_CUDA(cu.launch(p.add, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
        EXPECT_CUDA(cu.stream_synchronize(stream));
        EXPECT(expect_sum(&p, p.out, COUNT, 0) == 0, "rank %d", rank);
    }
    return leave(&p);
}

static void synchronous_launches(void **state)
{
    run(2, between_kernels);
}

/* ---- Many calls --------------------------------------------------------------------------- */

enum { CHECK_ROUNDS = 25, END_ROUNDS = 200, FREE_ROUNDS = 50 };

/* A communicator of its own ends by an abort or a deadline while one rank's stream is at a call. */
static int end_another(player *p, harness_board *board, int round, unsigned draw)
{
    const bool aborts = draw % 2 == 0;
    ring_status status = RING_OK;
    ring_call call = RING_CALL_INIT;
    player other = *p;
    EXPECT_OK(ring_comm_dup(p->comm, &other.comm));
    call.stream = p->streams[1];
    call.timeout = aborts ? 0 : 0.2;
    if (p->rank == 0)
        EXPECT_OK(ring_all_reduce((void *)(uintptr_t)p->spare, (void *)(uintptr_t)p->spare, COUNT,
                                  RING_INT32, RING_SUM, other.comm, &call));
    EXPECT_OK(ring_barrier(p->comm, NULL));
    if (p->rank == 1 && aborts)
        EXPECT_OK(ring_comm_abort(other.comm, "the test ends it"));
    for (const double since = harness_now(); status == RING_OK && harness_is_prompt(since);)
        status = ring_comm_status(other.comm);
    EXPECT(status == (aborts ? RING_ERR_ABORTED : RING_ERR_TIMEOUT), "round %d: %s", round,
           ring_last_error(other.comm));
    EXPECT_CUDA(cu.stream_synchronize(p->streams[1]));
    ring_comm_destroy(other.comm);
    return 0;
}

/* Frees and allocates where no stream waits. A free waits for the streams of all ranks of the
 * process, so no rank makes its next call before all have freed. */
static int renew(player *p)
{
    EXPECT_CUDA(cu.stream_synchronize(p->streams[0]));
    EXPECT_OK(ring_barrier(p->comm, NULL));
    EXPECT_CUDA(cu.mem_free(p->spare));
    EXPECT_CUDA(cu.mem_alloc(&p->spare, BYTES));
    EXPECT_OK(ring_barrier(p->comm, NULL));
    return 0;
}

/* Sits down with the elements of round 0 in src. */
static int begin_storm(player *p, int rank, int ranks, harness_board *board, int *rounds)
{
    const char *text = getenv("RING_TEST_ROUNDS");
    *rounds = text != NULL ? atoi(text) : 200;
    EXPECT(sit_down(p, rank, ranks, board) == 0, "rank %d", rank);
    for (int i = 0; i < COUNT; i++)
        p->in[i] = element(rank, 0, i);
    EXPECT_CUDA(cu.copy_async(p->src, (uintptr_t)p->in, BYTES, p->streams[0]));
    EXPECT_CUDA(cu.stream_synchronize(p->streams[0]));
    EXPECT_OK(ring_barrier(p->comm, NULL));
    return 0;
}

/* Calls of drawn counts with and without a stream. All ranks draw the same numbers; the delays are
 * their own. Kernels change src between the calls. */
static int storm(int rank, int ranks, harness_board *board, void *arg)
{
    unsigned draws = 7;
    int rounds;
    player p;
    EXPECT(begin_storm(&p, rank, ranks, board, &rounds) == 0, "rank %d", rank);
    CUstream stream = p.streams[0];
    sample_add three = {.words = (void *)(uintptr_t)p.src, .count = COUNT, .value = 3};
    void *parameters[] = {&three};
    for (int round = 0; round < rounds; round++) {
        const unsigned draw = (unsigned)rand_r(&draws);
        const int count = 1 + (int)(draw % COUNT);
        const bool checks = round % CHECK_ROUNDS == CHECK_ROUNDS - 1;
        if (draw / 7 % 8 == 0)
            usleep((unsigned)rand_r(&p.seed) % 1000);
        if (draw / 3 % 3 == 0) {
            EXPECT_CUDA(cu.stream_synchronize(stream)); /* it is not ordered before such a call */
            EXPECT_OK(sum(&p, NULL, count));
        } else {
            EXPECT_OK(sum(&p, stream, count));
        }
        if (checks) {
            EXPECT_CUDA(cu.stream_synchronize(stream));
            EXPECT_OK(ring_barrier(p.comm, NULL));
            EXPECT_CUDA(cu.copy_async((uintptr_t)p.out, p.dst, BYTES, stream));
            EXPECT_CUDA(cu.stream_synchronize(stream));
            EXPECT(expect_sum(&p, p.out, count, round) == 0, "rank %d", rank);
        }
        EXPECT_CUDA(cu.launch(p.add, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
        if (round % FREE_ROUNDS == FREE_ROUNDS - 1)
            EXPECT(renew(&p) == 0, "round %d", round);
        if (round % END_ROUNDS == END_ROUNDS - 1)
            EXPECT(end_another(&p, board, round, draw) == 0, "round %d", round);
    }
    EXPECT_CUDA(cu.stream_synchronize(stream));
    return leave(&p);
}

static void many_calls_of_two(void **state)
{
    run(2, storm);
}

static void many_calls_of_four(void **state)
{
    run(4, storm);
}

/* Ranks call two communicators, each in a stream of its own. Each rank draws the order of the two
 * calls and its delays. */
static int crossed_storm(int rank, int ranks, harness_board *board, void *arg)
{
    unsigned draws = 7;
    int rounds;
    player p;
    EXPECT(begin_storm(&p, rank, ranks, board, &rounds) == 0, "rank %d", rank);
    player two[2] = {p, p};
    EXPECT_OK(ring_comm_dup(p.comm, &two[1].comm));
    two[1].dst = p.spare;
    for (int round = 1; round <= rounds; round++) {
        const int counts[] = {1 + rand_r(&draws) % COUNT, 1 + rand_r(&draws) % COUNT};
        const int first = rand_r(&p.seed) % 2;
        for (int k = 0; k < 2; k++) {
            const int at = k ^ first;
            if (rand_r(&p.seed) % 16 == 0)
                usleep((unsigned)rand_r(&p.seed) % 1000);
            EXPECT_OK(sum(&two[at], p.streams[at], counts[at]));
        }
        for (int k = 0; round % CHECK_ROUNDS == 0 && k < 2; k++) {
            EXPECT_CUDA(cu.copy_async((uintptr_t)p.out, two[k].dst, BYTES, p.streams[k]));
            EXPECT_CUDA(cu.stream_synchronize(p.streams[k]));
            EXPECT(expect_sum(&p, p.out, counts[k], 0) == 0, "rank %d, round %d", rank, round);
        }
    }
    for (int k = 0; k < 2; k++)
        EXPECT_CUDA(cu.stream_synchronize(p.streams[k]));
    ring_comm_destroy(two[1].comm);
    return leave(&p);
}

static void many_calls_of_two_communicators(void **state)
{
    run(2, crossed_storm);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_copies),
        cmocka_unit_test(calls_in_streams),
        cmocka_unit_test(calls_between_kernels),
        cmocka_unit_test(replays),
        cmocka_unit_test(frees),
        cmocka_unit_test(synchronous_launches),
        cmocka_unit_test(many_calls_of_two),
        cmocka_unit_test(many_calls_of_four),
        cmocka_unit_test(many_calls_of_two_communicators),
    };
    if (argc < 2 || argc > 3)
        return 2;
    transport = argc == 3 ? argv[2] : "loop";
    harness_use(transport);
    setenv("FAKE_CUDA_DEADLINE", "10", 0);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (strcmp(tests[i].name, argv[1]) == 0) {
            const struct CMUnitTest chosen[] = {tests[i]};
            return cmocka_run_group_tests_name("coll.unkind_calls", chosen, NULL, NULL);
        }
    return 2;
}
