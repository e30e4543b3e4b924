/* SPDX-License-Identifier: Apache-2.0
 * Tests RING_HOLD_STREAMS over the double of NVIDIA's driver: when a communicator fails, streams
 * stay stopped at its calls and replays until their rank aborts or destroys the communicator.
 * Usage: test_coll_held_streams shared|own|processes|host: threads that share a GPU, threads with
 * one each, processes with one each, or processes that share one, whose calls the host drives. With
 * RING_DEVICE_PROGRAMS=0 the host drives those of all. */
#include "harness.h"

#include "cuda_table.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

enum { COUNT = 5003, FEW = 100, RANKS = 3, GUILTY = 2 };

typedef enum trial_fault { DEADLINE, ABORT, MISMATCH, LOST, FAULTS } trial_fault;
typedef enum trial_kind { SUMS, RECVS, REPLAYS } trial_kind;

/* Ranks 0 and 1 wait in calls or replays for rank GUILTY. */
typedef struct trial {
    trial_fault fault;
    trial_kind kind;
} trial;

static const char *transport_name;
static bool one_gpu, share, by_host; /* threads share launches; the host drives calls */
static cuda_table cu;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_driver(void)
{
    cu = cuda_functions();
}

/* The GPU process is forked, so before there are threads. */
static int start_gpu(void)
{
    pthread_once(&once, load_driver);
    EXPECT_CUDA(cu.init(0));
    return 0;
}

static int run_with(harness_body body, void *arg)
{
    return harness_run_apart(transport_name, RANKS, body, arg, start_gpu);
}

/* ---- A rank ------------------------------------------------------------------------------- */

typedef struct player {
    int rank;
    ring_comm *comm;
    CUstream stream;
    CUevent passed;
    CUdeviceptr buffer; /* COUNT int32 */
} player;

static int sit_down(player *p, int rank, int ranks, harness_board *board)
{
    CUcontext context;
    *p = (player){.rank = rank};
    pthread_once(&once, load_driver);
    EXPECT_CUDA(cu.init(0));
    EXPECT_CUDA(cu.primary_retain(&context, one_gpu ? 0 : rank));
    EXPECT_CUDA(cu.set_current(context));
    EXPECT_OK(harness_join(rank, ranks, board, &p->comm));
    EXPECT_CUDA(cu.stream_create(&p->stream, CU_STREAM_NON_BLOCKING, 0));
    EXPECT_CUDA(cu.event_create(&p->passed, CU_EVENT_DISABLE_TIMING));
    EXPECT_CUDA(cu.mem_alloc(&p->buffer, COUNT * sizeof(int32_t)));
    EXPECT_OK(ring_barrier(p->comm, NULL));
    return 0;
}

static ring_status make_call(const player *p, const trial *t, ring_work **started)
{
    void *buffer = (void *)(uintptr_t)p->buffer;
    const bool differs = p->rank == GUILTY && t->fault == MISMATCH;
    ring_call call = RING_CALL_INIT;
    call.stream = p->stream;
    call.work = started;
    call.timeout = t->fault == DEADLINE ? 0.5 : 0;
    if (t->kind == RECVS)
        return ring_recv(buffer, COUNT, RING_INT32, GUILTY, p->comm, &call);
    return ring_all_reduce(buffer, buffer, differs ? FEW : COUNT, RING_INT32, RING_SUM, p->comm,
                           &call);
}

static int capture(const player *p, const trial *t, CUgraphExec *exec)
{
    CUgraph graph;
    EXPECT_CUDA(cu.begin_capture(p->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT_OK(make_call(p, t, NULL));
    EXPECT_CUDA(cu.end_capture(p->stream, &graph));
    EXPECT_CUDA(cu.graph_instantiate(exec, graph, 0));
    return 0;
}

/* A first replay ends well on all ranks. */
static int replay_once(const player *p)
{
    const trial well = {.fault = ABORT, .kind = REPLAYS};
    CUgraphExec exec;
    EXPECT(capture(p, &well, &exec) == 0, "a capture");
    EXPECT_CUDA(cu.graph_launch(exec, p->stream));
    EXPECT_CUDA(cu.stream_synchronize(p->stream));
    EXPECT_OK(ring_barrier(p->comm, NULL));
    return 0;
}

/* ---- Streams ------------------------------------------------------------------------------ */

static int expect_stopped(const player *p, int ms)
{
    for (; ms > 0; ms--) {
        EXPECT(cu.event_query(p->passed) == CUDA_ERROR_NOT_READY, "rank %d: its stream continued",
               p->rank);
        usleep(1000);
    }
    return 0;
}

static void *abort_later(void *arg)
{
    player *p = arg;
    usleep(30000);
    return ring_comm_abort(p->comm, "its streams may continue") == RING_OK ? p : NULL;
}

/* The stream continues when another thread aborts, or this one destroys the communicator. */
static int let_go(player *p, bool destroys)
{
    pthread_t thread;
    void *ended = p;
    const double since = harness_now();
    if (destroys)
        ring_comm_destroy(p->comm);
    else
        EXPECT(pthread_create(&thread, NULL, abort_later, p) == 0, "no thread");
    EXPECT_CUDA(cu.stream_synchronize(p->stream));
    if (!destroys)
        pthread_join(thread, &ended);
    EXPECT(ended == p, "an abort failed");
    EXPECT(harness_is_prompt(since), "%.1f s", harness_now() - since);
    if (!destroys)
        ring_comm_destroy(p->comm);
    return 0;
}

/* ---- Trials ------------------------------------------------------------------------------- */

static int meet(harness_board *board, int counter, int ranks)
{
    atomic_fetch_add(&board->counters[counter], 1);
    EXPECT(harness_await(board, counter, ranks), "a rank is late");
    return 0;
}

static int begin(const player *p, const trial *t, CUgraphExec *exec, ring_work **started)
{
    if (t->kind == REPLAYS)
        EXPECT(replay_once(p) == 0, "rank %d", p->rank);
    if (p->rank == GUILTY && t->fault != MISMATCH)
        return 0;
    if (t->kind == REPLAYS) {
        EXPECT(capture(p, t, exec) == 0, "rank %d", p->rank);
        EXPECT_CUDA(cu.graph_launch(*exec, p->stream));
    } else {
        const ring_status status = make_call(p, t, started);
        EXPECT(status == RING_OK || status == RING_ERR_MISMATCH, "%s", ring_last_error(NULL));
    }
    EXPECT_CUDA(cu.event_record(p->passed, p->stream));
    return 0;
}

/* The rank learns of the failure, and its waits end, while its stream stays stopped. */
static int expect_failure(const player *p, const trial *t, ring_work **started)
{
    static const ring_status expected[] = {RING_ERR_TIMEOUT, RING_ERR_ABORTED, RING_ERR_MISMATCH,
                                           RING_ERR_PEER};
    const double since = harness_now();
    while (ring_comm_status(p->comm) == RING_OK && harness_is_prompt(since))
        usleep(1000);
    EXPECT(ring_comm_status(p->comm) == expected[t->fault], "rank %d: %s", p->rank,
           ring_last_error(p->comm));
    if (*started != NULL)
        EXPECT(ring_wait(started) == expected[t->fault], "rank %d: a wait", p->rank);
    EXPECT(make_call(p, t, NULL) == expected[t->fault], "rank %d: a later call", p->rank);
    return harness_is_prompt(since) ? 0 : 1;
}

/* Rank 1 lets go first. Only threads that share launches continue together. */
static int fails(int rank, int ranks, harness_board *board, void *arg)
{
    const trial *t = arg;
    const int left = t->fault == LOST ? ranks - 1 : ranks;
    const bool together = share && !by_host && t->kind == SUMS, last = rank == 0;
    player p;
    CUgraphExec exec = NULL;
    ring_work *started = NULL;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT(meet(board, 4, ranks) == 0, "rank %d", rank); /* no barrier is under way any more */
    EXPECT(begin(&p, t, &exec, &started) == 0, "rank %d", rank);
    EXPECT(meet(board, 0, ranks) == 0, "rank %d", rank);
    if (rank == GUILTY && t->fault == ABORT)
        EXPECT_OK(ring_comm_abort(p.comm, "enough"));
    if (rank == GUILTY && t->fault == LOST)
        raise(SIGKILL);
    EXPECT(expect_failure(&p, t, &started) == 0, "rank %d", rank);
    if (rank != GUILTY && !(together && t->fault == ABORT))
        EXPECT(expect_stopped(&p, 100) == 0, "rank %d", rank);
    EXPECT(meet(board, 1, left) == 0, "rank %d", rank);
    if (rank == 1)
        EXPECT(let_go(&p, t->fault % 2 == 0) == 0, "rank 1");
    EXPECT(meet(board, 2, left) == 0, "rank %d", rank);
    if (last && !together)
        EXPECT(expect_stopped(&p, 50) == 0, "rank 0");
    if (last && together)
        EXPECT_CUDA(cu.stream_synchronize(p.stream));
    EXPECT(meet(board, 3, left) == 0, "rank %d", rank);
    if (last || rank == GUILTY)
        EXPECT(let_go(&p, t->fault % 2 != 0) == 0, "rank %d", rank);
    if (exec != NULL) { /* later replays end at once */
        EXPECT_CUDA(cu.graph_launch(exec, p.stream));
        EXPECT_CUDA(cu.stream_synchronize(p.stream));
    }
    return 0;
}

static void try_all(trial_kind kind)
{
    const bool threads = harness_kind_of(transport_name) == HARNESS_THREADS;
    for (trial_fault f = DEADLINE; f < FAULTS; f++) {
        trial t = {f, kind};
        if ((f == LOST && threads) || (f == MISMATCH && kind == RECVS))
            continue;
        assert_int_equal(run_with(fails, &t), f == LOST);
    }
}

static void test_collectives_hold_streams(void **state)
{
    try_all(SUMS);
}

static void test_recvs_hold_streams(void **state)
{
    try_all(RECVS);
}

static void test_replays_hold_streams(void **state)
{
    if (share || by_host)
        skip_because("graphs cannot keep these calls");
    try_all(REPLAYS);
}

/* ---- Shrinking ---------------------------------------------------------------------------- */

/* The survivors' streams continue, and the new communicator works. */
static int shrinks(int rank, int ranks, harness_board *board, void *arg)
{
    const trial t = {.fault = LOST, .kind = SUMS};
    CUgraphExec exec;
    ring_work *started = NULL;
    player p, of_rest;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT(begin(&p, &t, &exec, &started) == 0, "rank %d", rank);
    EXPECT(meet(board, 0, ranks) == 0, "rank %d", rank);
    if (rank == GUILTY)
        raise(SIGKILL);
    EXPECT(expect_failure(&p, &t, &started) == 0, "rank %d", rank);
    EXPECT(expect_stopped(&p, 50) == 0, "rank %d", rank);
    of_rest = p;
    EXPECT_OK(ring_comm_shrink(p.comm, &of_rest.comm));
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    EXPECT_OK(make_call(&of_rest, &t, NULL));
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    EXPECT_OK(ring_comm_status(of_rest.comm));
    ring_comm_destroy(of_rest.comm);
    ring_comm_destroy(p.comm);
    return 0;
}

static void test_a_shrink_lets_streams_go(void **state)
{
    if (harness_kind_of(transport_name) == HARNESS_THREADS)
        skip_because("ranks are threads, which cannot be lost alone");
    assert_int_equal(run_with(shrinks, NULL), 1);
}

/* Rank GUILTY does nothing, and the communicator has not failed. */
static int leave_one_out(int rank, int ranks, harness_board *board, void *arg)
{
    static const int out[] = {GUILTY};
    const trial t = {.fault = ABORT, .kind = SUMS};
    CUgraphExec exec;
    ring_work *started = NULL;
    player p, of_rest;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT(begin(&p, &t, &exec, &started) == 0, "rank %d", rank);
    EXPECT(meet(board, 0, ranks) == 0, "rank %d", rank);
    if (rank != GUILTY) {
        of_rest = p;
        EXPECT_OK(ring_comm_exclude_abort(p.comm, out, 1, &of_rest.comm));
        EXPECT(ring_wait(&started) == RING_ERR_ABORTED, "rank %d", rank);
        EXPECT_CUDA(cu.stream_synchronize(p.stream));
        EXPECT_OK(make_call(&of_rest, &t, NULL));
        EXPECT_CUDA(cu.stream_synchronize(p.stream));
        EXPECT_OK(ring_comm_status(of_rest.comm));
        EXPECT(meet(board, 1, 2) == 0, "rank %d", rank);
        ring_comm_destroy(of_rest.comm);
    }
    EXPECT(harness_await(board, 1, 2), "a rank is late");
    ring_comm_destroy(p.comm);
    return 0;
}

static void test_leaving_ranks_out_lets_streams_go(void **state)
{
    assert_int_equal(run_with(leave_one_out, NULL), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collectives_hold_streams),
        cmocka_unit_test(test_recvs_hold_streams),
        cmocka_unit_test(test_replays_hold_streams),
        cmocka_unit_test(test_a_shrink_lets_streams_go),
        cmocka_unit_test(test_leaving_ranks_out_lets_streams_go),
    };
    if (argc != 2)
        return 2;
    const char *programs = getenv("RING_DEVICE_PROGRAMS");
    share = strcmp(argv[1], "shared") == 0;
    one_gpu = share || strcmp(argv[1], "host") == 0;
    by_host = (one_gpu && !share) || (programs != NULL && strcmp(programs, "0") == 0);
    transport_name = share || strcmp(argv[1], "own") == 0 ? "loop" : "shm";
    harness_use(transport_name);
    setenv("RING_HOLD_STREAMS", "1", 0);
    return cmocka_run_group_tests_name("coll.held_streams", tests, NULL, NULL);
}
