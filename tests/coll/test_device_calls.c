/* SPDX-License-Identifier: Apache-2.0
 * Tests calls on streams that GPUs run themselves, over the double of NVIDIA's driver: their order,
 * groups, graphs, and how they end if a rank is late, lost, or in a different call.
 * Usage: test_coll_device_calls shared|own|processes|mps: threads that share a GPU, threads with
 * one each, processes with one each, or processes that share one */
#include "harness.h"

#include "cuda_table.h"
#include "fake_cuda_table.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { REPLAYS = 100 };
#else
enum { REPLAYS = 1000 };
#endif
/* COUNT elements are sent by frames, FEW by words. */
enum { COUNT = 5003, FEW = 64, ROUNDS = 12 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* they slow the double down */
enum { MOST_MS = 1000 };
#else
enum { MOST_MS = 45 };
#endif
static int count = COUNT;

static bool shares, forks; /* threads share a launch; ranks are processes */
static bool is_one_gpu;
static cuda_table cu;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define LEGACY ((CUstream)(uintptr_t)1)

static void load_driver(void)
{
    cu = cuda_functions();
}

static void run(int ranks, harness_body body)
{
    const harness_kind kind = forks ? HARNESS_PROCESSES : HARNESS_THREADS;
    assert_int_equal(harness_run(kind, ranks, body, NULL, NULL), 0);
}

/* ---- A rank ------------------------------------------------------------------------------- */

typedef struct player {
    int rank, ranks;
    ring_comm *comm;
    CUstream stream, other;
    CUdeviceptr src, dst; /* COUNT int32 */
    int32_t host[COUNT];
} player;

static int sit_down(player *p, int rank, int ranks, harness_board *board)
{
    CUcontext context;
    *p = (player){.rank = rank, .ranks = ranks};
    pthread_once(&once, load_driver);
    EXPECT_CUDA(cu.init(0));
    EXPECT_CUDA(cu.primary_retain(&context, is_one_gpu ? 0 : rank));
    EXPECT_CUDA(cu.set_current(context));
    EXPECT_OK(harness_join(rank, ranks, board, &p->comm));
    EXPECT_CUDA(cu.stream_create(&p->stream, CU_STREAM_NON_BLOCKING, 0));
    EXPECT_CUDA(cu.stream_create(&p->other, CU_STREAM_NON_BLOCKING, 0));
    EXPECT_CUDA(cu.mem_alloc(&p->src, sizeof p->host));
    EXPECT_CUDA(cu.mem_alloc(&p->dst, sizeof p->host));
    EXPECT_OK(ring_barrier(p->comm, NULL));
    return 0;
}

/* Freeing memory of the device waits for the streams of all ranks. */
static int leave(player *p)
{
    if (ring_comm_status(p->comm) == RING_OK)
        EXPECT_OK(ring_barrier(p->comm, NULL));
    EXPECT_CUDA(cu.stream_synchronize(p->stream));
    EXPECT_CUDA(cu.stream_synchronize(p->other));
    ring_comm_destroy(p->comm);
    EXPECT_CUDA(cu.stream_destroy(p->stream));
    EXPECT_CUDA(cu.stream_destroy(p->other));
    return 0;
}

static int32_t element(int rank, int round, int i)
{
    return i % 1000 + rank * 7 + round * 3;
}

static int32_t sum_of(const player *p, int round, int i)
{
    int32_t sum = 0;
    for (int r = 0; r < p->ranks; r++)
        sum += element(r, round, i);
    return sum;
}

/* The stream brings what the rank gives in a round, and poisons where the result comes. */
static int give(player *p, CUstream stream, int round)
{
    for (int i = 0; i < count; i++)
        p->host[i] = element(p->rank, round, i);
    EXPECT_CUDA(cu.copy_to_device_async(p->src, p->host, sizeof p->host, stream));
    EXPECT_CUDA(cu.stream_synchronize(stream)); /* the host's copy is written again */
    EXPECT_CUDA(cu.set_bytes_async(p->dst, 0xa5, sizeof p->host, stream));
    return 0;
}

static ring_status sum(player *p, CUstream stream, const ring_call *options)
{
    ring_call call = options != NULL ? *options : (ring_call)RING_CALL_INIT;
    call.stream = stream;
    return ring_all_reduce((void *)(uintptr_t)p->src, (void *)(uintptr_t)p->dst, (size_t)count,
                           RING_INT32, RING_SUM, p->comm, &call);
}

static int expect_sum(player *p, CUstream stream, int round)
{
    EXPECT_CUDA(cu.copy_to_host_async(p->host, p->dst, sizeof p->host, stream));
    EXPECT_CUDA(cu.stream_synchronize(stream));
    for (int i = 0; i < count; i++)
        EXPECT(p->host[i] == sum_of(p, round, i), "rank %d, round %d, element %d: %d, not %d",
               p->rank, round, i, p->host[i], sum_of(p, round, i));
    return 0;
}

/* ---- Calls -------------------------------------------------------------------------------- */

/* Stops the rank's stream. @param[out] word  pinned; the stream goes on when it is 1. */
static int close_stream(const player *p, _Atomic uint32_t **word)
{
    CUdeviceptr there;
    void *pinned;
    EXPECT_CUDA(cu.host_alloc(&pinned, sizeof **word, CU_MEMHOSTALLOC_DEVICEMAP));
    *word = pinned;
    atomic_store(*word, 0);
    EXPECT_CUDA(cu.host_device_pointer(&there, pinned, 0));
    EXPECT_CUDA(cu.stream_wait_value(p->stream, there, 1, CU_STREAM_WAIT_VALUE_GEQ));
    return 0;
}

static int in_turn(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    const uint64_t before = harness_messages_sent(p.comm);
    for (int round = 0; round < ROUNDS; round++) {
        CUstream stream = round % 2 == 0 ? p.stream : p.other;
        EXPECT(give(&p, stream, round) == 0, "rank %d", rank);
        EXPECT_OK(sum(&p, stream, NULL));
        EXPECT(expect_sum(&p, stream, round) == 0, "rank %d", rank);
    }
    EXPECT(harness_messages_sent(p.comm) == before, "the host has moved messages");
    EXPECT_OK(ring_comm_status(p.comm));
    return leave(&p);
}

/* One buffer through many calls in two streams, which nobody orders but the communicator. */
static int in_two_streams(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT(give(&p, p.stream, 0) == 0, "rank %d", rank);
    for (int i = 0; i < 2 * ROUNDS; i++)
        EXPECT_OK(sum(&p, (i / 2) % 2 == 0 ? p.stream : p.other, NULL));
    EXPECT_CUDA(cu.stream_synchronize(p.other));
    EXPECT(expect_sum(&p, p.stream, 0) == 0, "rank %d", rank);
    return leave(&p);
}

/* In odd rounds the odd ranks have a stream. The others' buffers are written by the default stream,
 * which the host does not wait for. */
static int without_streams(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    const uint64_t before = harness_messages_sent(p.comm);
    for (int round = 0; round < ROUNDS; round++) {
        const CUstream given = round % 2 == 1 && rank % 2 == 1 ? p.stream : NULL;
        EXPECT(give(&p, given != NULL ? given : LEGACY, round) == 0, "rank %d", rank);
        EXPECT_OK(sum(&p, given, NULL));
        EXPECT(expect_sum(&p, given != NULL ? given : p.other, round) == 0, "rank %d", rank);
    }
    EXPECT(harness_messages_sent(p.comm) == before, "the host has moved messages");
    return leave(&p);
}

/* A call whose peer is 3 ms late takes little longer: its thread does not sleep for 50 ms. */
static int late_peers(int rank, int ranks, harness_board *board, void *arg)
{
    enum { CALLS = 15 };
    double times[CALLS];
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    for (int i = 0; i < CALLS; i++) {
        EXPECT_OK(ring_barrier(p.comm, NULL));
        const double since = harness_now();
        if (rank != 0)
            usleep(3000);
        EXPECT_OK(sum(&p, NULL, NULL));
        times[i] = harness_now() - since;
    }
    const double median = harness_median(times, CALLS);
    EXPECT(median < 1e-3 * MOST_MS, "rank %d: %.1f ms", rank, 1e3 * median);
    return leave(&p);
}

/* While the GPU waits for a late peer, no thread of the process is busy. */
static int waits_of_the_gpu(int rank, int ranks, harness_board *board, void *arg)
{
    enum { LATE_US = 400000 };
    player p;
    struct timespec used[2];
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT_OK(ring_barrier(p.comm, NULL));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used[0]);
    if (rank != 0)
        usleep(LATE_US);
    EXPECT_OK(sum(&p, p.stream, NULL));
    if (rank == 0)
        usleep(LATE_US);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used[1]);
    const double busy = (double)(used[1].tv_sec - used[0].tv_sec) +
                        1e-9 * (double)(used[1].tv_nsec - used[0].tv_nsec);
    EXPECT(busy < LATE_US * 0.5e-6, "rank %d: busy for %.0f ms", rank, 1e3 * busy);
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    return leave(&p);
}

/* A rank destroys its communicator when its stream has passed a run of many calls, of whose end no
 * thread has learnt: RING_PROGRESS=none. The calls have succeeded all the same. */
static int many_calls_then_the_end(int rank, int ranks, harness_board *board, void *arg)
{
    enum { MESSAGES = 20 };
    player p;
    ring_work *works[2 * MESSAGES];
    ring_call call = RING_CALL_INIT;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    call.stream = p.stream;
    EXPECT_OK(ring_group_start());
    for (int i = 0; i < MESSAGES; i++) {
        call.work = &works[2 * i];
        EXPECT_OK(ring_send((void *)(uintptr_t)p.src, 1, RING_INT32, 1 - rank, p.comm, &call));
        call.work = &works[2 * i + 1];
        EXPECT_OK(ring_recv((void *)(uintptr_t)p.dst, 1, RING_INT32, 1 - rank, p.comm, &call));
    }
    EXPECT_OK(ring_group_end());
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    ring_comm_destroy(p.comm);
    for (int i = 0; i < 2 * MESSAGES; i++)
        EXPECT_OK(ring_wait(&works[i]));
    return 0;
}

/* A flush waits for calls that GPUs run, on streams that have not reached them and without one. */
static int flushed(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    _Atomic uint32_t *word;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT(give(&p, p.stream, 0) == 0, "rank %d", rank);
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    EXPECT(close_stream(&p, &word) == 0, "rank %d", rank);
    EXPECT_OK(sum(&p, p.stream, NULL));
    EXPECT(ring_comm_flush(p.comm, 0) == RING_IN_PROGRESS, "a call before its stream");
    EXPECT(ring_comm_flush(p.comm, 0.05) == RING_IN_PROGRESS, "a call before its stream");
    atomic_store(word, 1);
    EXPECT_OK(ring_comm_flush(p.comm, HARNESS_PROMPT));
    EXPECT(expect_sum(&p, p.stream, 0) == 0, "rank %d", rank);
    EXPECT_OK(ring_comm_flush(p.comm, 0));
    return leave(&p);
}

/* A process whose calls have ended exits without destroying the communicator, and is not lost. */
static int exits(int rank, int ranks, harness_board *board, void *arg)
{
    static player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT(give(&p, p.stream, 0) == 0, "rank %d", rank);
    EXPECT_OK(sum(&p, p.stream, NULL));
    EXPECT(expect_sum(&p, p.stream, 0) == 0, "rank %d", rank);
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    if (rank == 1)
        return 0;
    usleep(700000);
    EXPECT_OK(ring_comm_status(p.comm));
    ring_comm_destroy(p.comm);
    return 0;
}

/* Calls wait for events, with and without a stream. */
static int after_events(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    const uint64_t before = harness_messages_sent(p.comm);
    for (int round = 0; round < 4; round++) {
        ring_event *event;
        ring_work *work;
        int done;
        ring_call call = RING_CALL_INIT;
        EXPECT_OK(ring_event_create(&event));
        call.work = &work;
        call.after = event;
        EXPECT_OK(sum(&p, round % 2 == 0 ? NULL : p.stream, &call));
        EXPECT(give(&p, p.other, round) == 0, "rank %d", rank);
        EXPECT_CUDA(cu.stream_synchronize(p.other));
        EXPECT_OK(ring_test(&work, &done));
        EXPECT(!done, "the call has not waited");
        EXPECT_OK(ring_event_set(event, RING_OK));
        EXPECT_OK(ring_wait(&work));
        EXPECT(expect_sum(&p, p.other, round) == 0, "rank %d", rank);
        ring_event_destroy(event);
    }
    EXPECT(harness_messages_sent(p.comm) == before, "the host has moved messages");
    return leave(&p);
}

/* One prepared call, with and without a stream. */
static int prepared(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    ring_prepared *kept;
    ring_call call = RING_CALL_INIT;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    const uint64_t before = harness_messages_sent(p.comm);
    call.prepared = &kept;
    EXPECT_OK(sum(&p, NULL, &call));
    for (int round = 0; round < 4; round++) {
        const CUstream given = round % 2 == rank % 2 ? p.stream : NULL;
        call = (ring_call)RING_CALL_INIT;
        call.stream = given;
        EXPECT(give(&p, given != NULL ? given : LEGACY, round) == 0, "rank %d", rank);
        EXPECT_OK(ring_prepared_start(kept, &call));
        EXPECT(expect_sum(&p, given != NULL ? given : p.other, round) == 0, "rank %d", rank);
    }
    ring_prepared_destroy(kept);
    EXPECT(harness_messages_sent(p.comm) == before, "the host has moved messages");
    return leave(&p);
}

static void *open_later(void *word)
{
    usleep(100000);
    atomic_store((_Atomic uint32_t *)word, 1);
    return NULL;
}

/* More calls with lists than have room for them at once, in a stream that is stopped at first. Each
 * call writes other places. */
static int many_lists(int rank, int ranks, harness_board *board, void *arg)
{
    enum { CALLS = 512, EACH = 4 };
    const size_t counts[] = {EACH, EACH};
    _Atomic uint32_t *word;
    pthread_t thread;
    player p;
    ring_call call = RING_CALL_INIT;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT(give(&p, p.stream, 0) == 0, "rank %d", rank);
    EXPECT(close_stream(&p, &word) == 0, "rank %d", rank);
    EXPECT(pthread_create(&thread, NULL, open_later, word) == 0, "no thread");
    const uint64_t before = harness_messages_sent(p.comm);
    call.stream = p.stream;
    for (size_t i = 0; i < CALLS; i++) {
        int32_t *src = (int32_t *)(uintptr_t)p.src, *dst = (int32_t *)(uintptr_t)p.dst;
        void *dsts[] = {dst + 2 * i * EACH, dst + (2 * i + 1) * EACH};
        EXPECT_OK(ring_all_gather_list(src + i * EACH, dsts, counts, RING_INT32, p.comm, &call));
    }
    pthread_join(thread, NULL);
    EXPECT(harness_messages_sent(p.comm) == before, "the host has moved messages");
    EXPECT_CUDA(cu.copy_to_host_async(p.host, p.dst, sizeof p.host, p.stream));
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    for (int i = 0; i < 2 * CALLS * EACH; i++) {
        const int from = i / EACH % 2, at = i / (2 * EACH) * EACH + i % EACH;
        EXPECT(p.host[i] == element(from, 0, at), "rank %d, call %d: %d", rank, i / (2 * EACH),
               p.host[i]);
    }
    return leave(&p);
}

static void count_done(void *context, ring_status status)
{
    atomic_fetch_add((_Atomic int *)context, status == RING_OK ? 1 : 100);
}

static int in_groups(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    ring_work *work;
    _Atomic int done = 0;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT(give(&p, p.stream, 5) == 0, "rank %d", rank);
    ring_call call = RING_CALL_INIT, counted = RING_CALL_INIT;
    call.work = &work;
    counted.on_done = count_done;
    counted.context = &done;
    EXPECT_OK(ring_group_start());
    EXPECT_OK(sum(&p, p.stream, &counted));
    EXPECT_OK(sum(&p, p.stream, &call));
    EXPECT_OK(ring_group_end());
    EXPECT_OK(ring_wait(&work));
    EXPECT(expect_sum(&p, p.stream, 5) == 0, "rank %d", rank);
    for (int i = 0; atomic_load(&done) == 0 && i < 10000; i++)
        usleep(1000);
    EXPECT(atomic_load(&done) == 1, "%d", atomic_load(&done));
    return leave(&p);
}

static ring_status broadcast_few(const player *p)
{
    ring_call call = RING_CALL_INIT;
    call.stream = p->stream;
    const CUdeviceptr at = p->rank == 0 ? p->src : p->dst;
    void *buffer = (void *)(uintptr_t)at;
    return ring_broadcast(buffer, buffer, FEW, RING_INT32, 0, p->comm, &call);
}

/* The calls of rank 0 end although rank 1 has begun none of them, and rank 0 overwrites its buffer
 * afterwards. Its process must not end before rank 1 has taken all messages, if its memory ends
 * with it. */
static int ahead(int rank, int ranks, harness_board *board, void *arg)
{
    enum { AHEAD = 2, LATE_US = 300000 };
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    for (int round = 0; rank == 0 && round < AHEAD; round++) {
        EXPECT(give(&p, p.stream, round) == 0, "rank %d", rank);
        EXPECT_OK(broadcast_few(&p));
        EXPECT_CUDA(cu.stream_synchronize(p.stream));
    }
    EXPECT_CUDA(cu.set_bytes_async(p.src, 0xa5, sizeof p.host, p.stream));
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    atomic_fetch_add(&board->counters[0], rank == 0);
    EXPECT(harness_await(board, 0, 1), "rank 0 is late");
    const double since = harness_now();
    if (rank != 0)
        usleep(LATE_US);
    for (int round = 0; rank != 0 && round < AHEAD; round++) {
        EXPECT_OK(broadcast_few(&p));
        EXPECT_CUDA(cu.copy_to_host_async(p.host, p.dst, FEW * sizeof *p.host, p.stream));
        EXPECT_CUDA(cu.stream_synchronize(p.stream));
        for (int i = 0; i < FEW; i++)
            EXPECT(p.host[i] == element(0, round, i), "round %d, %d: %d", round, i, p.host[i]);
    }
    ring_comm_destroy(p.comm);
    const bool outlives = !forks || getenv("FAKE_CUDA_IPC") != NULL; /* a room does */
    EXPECT(outlives || harness_now() - since > LATE_US * 1e-6, "rank %d has left its peer", rank);
    return 0;
}

static void test_calls_run_in_their_order(void **state)
{
    for (int i = 0; i < 2; i++) {
        count = i == 0 ? COUNT : FEW;
        run(2, in_turn);
        run(3, in_two_streams);
        run(3, without_streams);
    }
    run(2, late_peers);
    if (forks)
        run(2, waits_of_the_gpu);
    count = COUNT;
    run(2, in_groups);
    run(2, after_events);
    run(2, flushed);
    run(2, many_lists);
    run(2, prepared);
    if (shares)
        return;
    run(2, ahead);
    if (harness_number("RING_TEST_HOSTS", 1) > 1) /* the host carries frames */
        return;
    if (forks) {
        setenv("RING_EXIT", "leave", 1);
        run(2, exits);
        unsetenv("RING_EXIT");
    }
    setenv("RING_PROGRESS", "none", 1);
    run(2, many_calls_then_the_end);
    unsetenv("RING_PROGRESS");
}

/* ---- Graphs ------------------------------------------------------------------------------- */

static int replay(player *p, CUgraphExec exec)
{
    for (int i = 0; i < REPLAYS; i++) {
        if (i % 200 == 0)
            EXPECT(give(p, p->stream, i) == 0, "rank %d", p->rank);
        EXPECT_CUDA(cu.graph_launch(exec, p->stream));
        if (i % 200 == 0)
            EXPECT(expect_sum(p, p->stream, i) == 0, "rank %d", p->rank);
        if (i % 20 == 0) /* the double has one room for what all streams are to do */
            EXPECT_CUDA(cu.stream_synchronize(p->stream));
    }
    EXPECT_CUDA(cu.stream_synchronize(p->stream));
    return 0;
}

static int captured(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    CUgraph graph;
    CUgraphExec exec;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT_CUDA(cu.begin_capture(p.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    const ring_status status = sum(&p, p.stream, NULL);
    EXPECT_CUDA(cu.end_capture(p.stream, &graph));
    if (shares) {
        EXPECT(status == RING_ERR_UNSUPPORTED && harness_says("share a GPU"), "%s",
               ring_last_error(NULL));
        EXPECT_CUDA(cu.graph_destroy(graph));
        return leave(&p);
    }
    EXPECT_OK(status);
    EXPECT_CUDA(cu.graph_instantiate(&exec, graph, 0));
    EXPECT_CUDA(cu.graph_destroy(graph));
    EXPECT(replay(&p, exec) == 0, "rank %d", rank);
    EXPECT(give(&p, p.stream, 3) == 0, "rank %d", rank); /* calls and replays mix */
    EXPECT_OK(sum(&p, p.stream, NULL));
    EXPECT(expect_sum(&p, p.stream, 3) == 0, "rank %d", rank);
    EXPECT_OK(ring_barrier(p.comm, NULL));
    ring_comm_destroy(p.comm);
    EXPECT_CUDA(cu.graph_launch(exec, p.stream)); /* does nothing */
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    EXPECT_CUDA(cu.graph_exec_destroy(exec));
    return 0;
}

static void test_graphs_replay_calls(void **state)
{
    run(2, captured);
    count = FEW;
    run(2, captured);
    count = COUNT;
}

/* ---- How calls fail ----------------------------------------------------------------------- */

/* The stream goes on, and the communicator says why. */
static int expect_failure(player *p, ring_status status, const char *text)
{
    const double since = harness_now();
    EXPECT_CUDA(cu.stream_synchronize(p->stream));
    while (ring_comm_status(p->comm) == RING_OK && harness_is_prompt(since))
        usleep(1000);
    EXPECT(ring_comm_status(p->comm) == status, "%d: %s", (int)ring_comm_status(p->comm),
           ring_last_error(p->comm));
    EXPECT(sum(p, p->stream, NULL) == status, "a call after the end");
    EXPECT(strstr(ring_last_error(p->comm), text) != NULL, "%s", ring_last_error(p->comm));
    return 0;
}

/* Rank 0 alone makes a call. */
static int late_rank(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    ring_call call = RING_CALL_INIT;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    call.timeout = 0.3;
    if (rank == 0)
        EXPECT_OK(sum(&p, p.stream, &call));
    EXPECT(expect_failure(&p, RING_ERR_TIMEOUT, "not finished before its deadline") == 0, "rank %d",
           rank);
    return leave(&p);
}

/* Rank 1 makes the call when RING_TIMEOUT is over. */
static int late_without_deadline(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    ring_call call = RING_CALL_INIT;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    call.timeout = RING_TIMEOUT_NONE;
    usleep(rank == 1 ? 2500000 : 0);
    EXPECT_OK(sum(&p, p.stream, &call));
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    EXPECT_OK(ring_comm_status(p.comm));
    return leave(&p);
}

/* No stream reaches the call before its deadline, so no kernel can check it. After the deadline the
 * streams pass the call, and write nothing to its buffers. */
static int never_reached(int rank, int ranks, harness_board *board, void *arg)
{
    _Atomic uint32_t *word;
    ring_status status = RING_OK;
    ring_call call = RING_CALL_INIT;
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT(close_stream(&p, &word) == 0, "rank %d", rank);
    call.timeout = 0.3;
    EXPECT_OK(sum(&p, p.stream, &call));
    for (const double since = harness_now(); status == RING_OK && harness_is_prompt(since);)
        status = ring_comm_status(p.comm);
    EXPECT(status == RING_ERR_TIMEOUT, "%d: %s", (int)status, ring_last_error(p.comm));
    EXPECT(strstr(ring_last_error(p.comm), "the GPU has not completed the call") != NULL, "%s",
           ring_last_error(p.comm));
    EXPECT(cu.stream_query(p.stream) == CUDA_ERROR_NOT_READY, "the stream went on by itself");
    atomic_store(word, 1);
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    return leave(&p);
}

/* A call without a stream comes after work of the default stream, which does not end in time. */
static int default_stream_is_busy(int rank, int ranks, harness_board *board, void *arg)
{
    player p, at_default;
    _Atomic uint32_t *word;
    ring_call call = RING_CALL_INIT;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    at_default = p;
    at_default.stream = LEGACY;
    EXPECT(close_stream(&at_default, &word) == 0, "rank %d", rank);
    call.timeout = 0.3;
    const ring_status status = sum(&p, NULL, &call);
    EXPECT(status == RING_ERR_TIMEOUT, "%d: %s", (int)status, ring_last_error(NULL));
    EXPECT(strstr(ring_last_error(NULL), "default stream") != NULL, "%s", ring_last_error(NULL));
    atomic_store(word, 1);
    EXPECT_CUDA(cu.stream_synchronize(LEGACY));
    return leave(&p);
}

static int aborted(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    if (rank == 0)
        EXPECT_OK(sum(&p, p.stream, NULL));
    atomic_fetch_add(&board->counters[0], rank == 0);
    EXPECT(harness_await(board, 0, 1), "rank 0 is late");
    if (rank == 1)
        EXPECT_OK(ring_comm_abort(p.comm, "enough"));
    EXPECT(expect_failure(&p, RING_ERR_ABORTED, "enough") == 0, "rank %d", rank);
    return leave(&p);
}

static int other_counts(int rank, int ranks, harness_board *board, void *arg)
{
    char text[32];
    player p;
    ring_call call = RING_CALL_INIT;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    call.stream = p.stream;
    const size_t mine = rank == 0 ? 100 : (size_t)count;
    const ring_status status = ring_all_reduce((void *)(uintptr_t)p.src, (void *)(uintptr_t)p.dst,
                                               mine, RING_INT32, RING_SUM, p.comm, &call);
    EXPECT(status == RING_OK || status == RING_ERR_MISMATCH, "%d", (int)status);
    (void)snprintf(text, sizeof text, "count %d", count);
    EXPECT(expect_failure(&p, RING_ERR_MISMATCH, text) == 0, "rank %d", rank);
    return leave(&p);
}

/* Rank 0 has buffers of the GPU, and rank 1 of the host. The ranks compare their calls when they
 * have made no progress for a while. */
static int other_memory(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    ring_call call = RING_CALL_INIT;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    call.stream = rank == 0 ? p.stream : NULL;
    void *buffer = rank == 0 ? (void *)(uintptr_t)p.src : p.host;
    const ring_status status = ring_all_reduce(buffer, buffer, COUNT, RING_INT32, RING_SUM, p.comm,
                                               &call);
    EXPECT(status == (rank == 0 ? RING_OK : RING_ERR_MISMATCH), "%d", (int)status);
    EXPECT(expect_failure(&p, RING_ERR_MISMATCH, "run by GPUs") == 0, "rank %d", rank);
    return leave(&p);
}

static int destroyed(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    if (rank == 0)
        EXPECT_OK(sum(&p, p.stream, NULL));
    ring_comm_destroy(p.comm);
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    return 0;
}

/* Makes a stream of this rank's GPU that is stopped until *word is 1. */
static int sit_beside_a_stopped_stream(player *p, int rank, int ranks, _Atomic uint32_t **word)
{
    CUcontext context;
    *p = (player){.rank = rank, .ranks = ranks};
    pthread_once(&once, load_driver);
    EXPECT_CUDA(cu.init(0));
    EXPECT_CUDA(cu.primary_retain(&context, is_one_gpu ? 0 : rank));
    EXPECT_CUDA(cu.set_current(context));
    EXPECT_CUDA(cu.stream_create(&p->stream, CU_STREAM_NON_BLOCKING, 0));
    EXPECT(close_stream(p, word) == 0, "rank %d", rank);
    fake_cuda_functions().permit(true); /* the thread of the start goes on when the stream does */
    return 0;
}

static int let_go(const player *p, _Atomic uint32_t *word)
{
    EXPECT(cu.stream_query(p->stream) == CUDA_ERROR_NOT_READY, "the stream went on by itself");
    atomic_store(word, 1);
    EXPECT_CUDA(cu.stream_synchronize(p->stream));
    return 0;
}

/* A stream of the GPU is stopped while a communicator is made, and the driver waits for it. The
 * start ends nevertheless, and the host drives the communicator's calls. */
static int start_beside_a_stopped_stream(int rank, int ranks, harness_board *board, void *arg)
{
    _Atomic uint32_t *word;
    player p;
    EXPECT(sit_beside_a_stopped_stream(&p, rank, ranks, &word) == 0, "rank %d", rank);
    EXPECT_OK(harness_join(rank, ranks, board, &p.comm));
    EXPECT_OK(ring_barrier(p.comm, NULL));
    EXPECT(let_go(&p, word) == 0, "rank %d", rank);
    ring_comm_destroy(p.comm);
    return 0;
}

/* Such a start is aborted while the driver waits. */
static int abort_beside_a_stopped_stream(int rank, int ranks, harness_board *board, void *arg)
{
    ring_config config = RING_CONFIG_INIT;
    _Atomic uint32_t *word;
    player p;
    EXPECT(sit_beside_a_stopped_stream(&p, rank, ranks, &word) == 0, "rank %d", rank);
    config.nonblocking = 1;
    if (rank == 0)
        EXPECT_OK(ring_get_unique_id(&board->id));
    atomic_fetch_add(&board->counters[0], rank == 0);
    EXPECT(harness_await(board, 0, 1), "rank 0 is late");
    EXPECT_OK(ring_comm_init_config(&p.comm, ranks, &board->id, rank, &config));
    usleep(500000);
    EXPECT(ring_comm_status(p.comm) == RING_IN_PROGRESS, "%d", (int)ring_comm_status(p.comm));
    atomic_fetch_add(&board->counters[1], 1);
    EXPECT(harness_await(board, 1, ranks), "a rank is late");
    const double since = harness_now();
    if (rank == 1)
        EXPECT_OK(ring_comm_abort(p.comm, "enough"));
    EXPECT(ring_barrier(p.comm, NULL) == RING_ERR_ABORTED, "%s", ring_last_error(NULL));
    EXPECT(strstr(ring_last_error(p.comm), "enough") != NULL, "%s", ring_last_error(p.comm));
    EXPECT(harness_is_prompt(since), "took %g s", harness_now() - since);
    ring_comm_destroy(p.comm);
    EXPECT(harness_is_prompt(since), "took %g s", harness_now() - since);
    return let_go(&p, word);
}

static void test_starts_end_beside_stopped_streams(void **state)
{
    setenv("RING_INIT_TIMEOUT", "4", 1);
    run(2, start_beside_a_stopped_stream);
    setenv("RING_INIT_TIMEOUT", "none", 1);
    run(2, abort_beside_a_stopped_stream);
    unsetenv("RING_INIT_TIMEOUT");
}

static void test_failures_end_streams(void **state)
{
    for (int i = 0; i < 2; i++) {
        count = i == 0 ? FEW : COUNT;
        run(2, late_rank);
        run(2, aborted);
        run(2, other_counts);
    }
    setenv("RING_TIMEOUT", "1", 1);
    run(2, late_without_deadline);
    unsetenv("RING_TIMEOUT");
    run(2, never_reached);
    run(2, default_stream_is_busy);
    run(2, other_memory);
    run(2, destroyed);
}

static int lost_rank(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    if (rank == 1) {
        (void)harness_await(board, 0, 1);
        raise(SIGKILL);
    }
    EXPECT_OK(sum(&p, p.stream, NULL));
    atomic_store(&board->counters[0], 1);
    EXPECT(expect_failure(&p, RING_ERR_PEER, "rank 1") == 0, "rank %d", rank);
    return leave(&p);
}

static void test_a_lost_rank_ends_streams(void **state)
{
    if (!forks)
        skip_because("ranks are threads, which cannot be lost alone");
    assert_int_equal(harness_run(HARNESS_PROCESSES, 2, lost_rank, NULL, NULL), 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_run_in_their_order),
        cmocka_unit_test(test_graphs_replay_calls),
        cmocka_unit_test(test_failures_end_streams),
        cmocka_unit_test(test_a_lost_rank_ends_streams),
        cmocka_unit_test(test_starts_end_beside_stopped_streams), /* last: it permits all calls */
    };
    if (argc != 2)
        return 2;
    shares = strcmp(argv[1], "shared") == 0;
    is_one_gpu = shares || strcmp(argv[1], "mps") == 0;
    forks = !shares && strcmp(argv[1], "own") != 0;
    harness_use(forks ? "shm" : "loop");
    if (!forks) { /* the GPU process is forked, so before there are threads */
        pthread_once(&once, load_driver);
        (void)cu.init(0);
    }
    return cmocka_run_group_tests_name("coll.device_calls", tests, NULL, NULL);
}
