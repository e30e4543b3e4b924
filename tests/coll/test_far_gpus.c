/* SPDX-License-Identifier: Apache-2.0
 * Tests calls of GPUs on several hosts, over the double of NVIDIA's driver: the frames that the
 * host keeps in flight, how often it copies their bytes, links that misbehave, and graphs. Usage:
 * test_coll_far_gpus loop|shm: ranks are threads or processes, and RING_TEST_HOSTS=2 */
#include "harness.h"

#include "cuda_table.h"
#include "device_calls.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit_test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { COUNT = 1 << 19, REPLAYS = 100 };
#else
enum { COUNT = 1 << 21, REPLAYS = 1000 };
#endif
enum { BYTES = COUNT * 4, FRAME = 128 << 10, FEW = 1000 };

static const char *near;
static cuda_table cu;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_driver(void)
{
    cu = cuda_functions();
}

/* ---- A rank --------------------------------------------------------------------------------- */

typedef struct player {
    int rank, ranks;
    ring_comm *comm;
    CUstream stream;
    CUdeviceptr src, dst;
    int32_t *host; /* [COUNT] */
} player;

static int32_t element(int rank, int round, int i)
{
    return (i % 1009 + 3 * round) * (rank + 1);
}

static int give(const player *p, int round, int count)
{
    for (int i = 0; i < count; i++)
        p->host[i] = element(p->rank, round, i);
    EXPECT_CUDA(cu.copy_async(p->src, (uintptr_t)p->host, (size_t)count * 4, p->stream));
    EXPECT_CUDA(cu.stream_synchronize(p->stream));
    return 0;
}

static int sit_down(player *p, int rank, int ranks, harness_board *board)
{
    CUcontext context;
    *p = (player){.rank = rank, .ranks = ranks, .host = malloc(BYTES)};
    EXPECT(p->host != NULL, "no memory");
    pthread_once(&once, load_driver);
    EXPECT_CUDA(cu.init(0));
    EXPECT_CUDA(cu.primary_retain(&context, rank));
    EXPECT_CUDA(cu.set_current(context));
    EXPECT_OK(harness_join(rank, ranks, board, &p->comm));
    EXPECT_CUDA(cu.stream_create(&p->stream, CU_STREAM_NON_BLOCKING, 0));
    EXPECT_CUDA(cu.mem_alloc(&p->src, BYTES));
    EXPECT_CUDA(cu.mem_alloc(&p->dst, BYTES));
    return give(p, 0, COUNT);
}

static void leave(player *p)
{
    ring_comm_destroy(p->comm);
    free(p->host);
}

static ring_status sum(const player *p, int count, ring_work **started)
{
    ring_call call = RING_CALL_INIT;
    call.stream = p->stream;
    call.work = started;
    return ring_all_reduce((void *)(uintptr_t)p->src, (void *)(uintptr_t)p->dst, (size_t)count,
                           RING_INT32, RING_SUM, p->comm, &call);
}

static ring_status sum_and_wait(const player *p, int count)
{
    ring_work *started = NULL;
    const ring_status status = sum(p, count, &started);
    return status == RING_OK ? ring_wait(&started) : status;
}

static int expect_sum(const player *p, int round, int count)
{
    EXPECT_CUDA(cu.copy_to_host_async(p->host, p->dst, (size_t)count * 4, p->stream));
    EXPECT_CUDA(cu.stream_synchronize(p->stream));
    for (int i = 0; i < count; i++) {
        int32_t want = 0;
        for (int r = 0; r < p->ranks; r++)
            want += element(r, round, i);
        EXPECT(p->host[i] == want, "round %d: element %d is %d and not %d", round, i, p->host[i],
               want);
    }
    return 0;
}

static int run_with(int ranks, harness_body body, void *arg)
{
    return harness_run_apart(near, ranks, body, arg, NULL);
}

static int run(int ranks, harness_body body)
{
    return run_with(ranks, body, NULL);
}

/* ---- Frames in flight ----------------------------------------------------------------------- */

/* @return frames of at least FRAME bytes that the GPU has written and the peer has not taken. */
static uint64_t in_flight(const accelerator_boxes *box, const accelerator_shape *shape)
{
    const uint64_t taken = __atomic_load_n(&box->in_receipt->taken, __ATOMIC_ACQUIRE);
    uint64_t frames = 0;
    for (uint64_t k = taken; k < taken + shape->frames; k++) {
        const device_frame *f = &box->out[k % shape->frames];
        if (__atomic_load_n(&f->stamp, __ATOMIC_ACQUIRE) != k + 1)
            break;
        frames += f->bytes >= FRAME;
    }
    return frames;
}

/* The wire is the bottleneck, so each lane fills its box. */
static int long_message(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    ring_work *started;
    ring_call call = RING_CALL_INIT;
    int finished = 0;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    const struct device_calls *d = p.comm->device_calls;
    const int lanes = d->terms.shape.lanes;
    uint64_t most[64] = {0};
    call.stream = p.stream;
    call.work = &started;
    if (rank == 0)
        EXPECT_OK(ring_send((void *)(uintptr_t)p.src, COUNT, RING_INT32, 1, p.comm, &call));
    else
        EXPECT_OK(ring_recv((void *)(uintptr_t)p.dst, COUNT, RING_INT32, 0, p.comm, &call));
    while (finished == 0) {
        for (int lane = 0; lane < lanes; lane++) {
            accelerator_boxes box;
            d->by->programs->boxes(d->seat, 1 - rank, lane, &box);
            const uint64_t now = in_flight(&box, &d->terms.shape);
            most[lane] = now > most[lane] ? now : most[lane];
        }
        EXPECT_OK(ring_test(&started, &finished));
    }
    for (int lane = 0; rank == 0 && lane < lanes; lane++)
        EXPECT(most[lane] >= 4, "lane %d of %d: %llu frames", lane, lanes,
               (unsigned long long)most[lane]);
    leave(&p);
    return 0;
}

static void many_long_frames_are_in_flight(void **state)
{
    setenv("RING_FAULT", "delay=0.002", 1);
    assert_int_equal(run(2, long_message), 0);
    unsetenv("RING_FAULT");
}

/* ---- Copies --------------------------------------------------------------------------------- */

/* A link whose payloads are inner by how they pass it. One process has one such link, or its two
 * ends. */
static transport table;
static const transport *inner;
static struct {
    _Atomic uint64_t lent, copied, put, pulled;
} bytes_of;

static ring_status count_send(transport_link *l, const transport_frame *frame, const void *payload,
                              bool copy)
{
    const ring_status status = inner->send(l, frame, payload, copy);
    if (status == RING_OK)
        atomic_fetch_add(copy ? &bytes_of.copied : &bytes_of.lent, transport_behind(frame));
    return status;
}

static ring_status count_put(transport_link *l, const transport_frame *frame, const void *data,
                             uint64_t dst_ref)
{
    const ring_status status = inner->put(l, frame, data, dst_ref);
    if (status == RING_OK)
        atomic_fetch_add(&bytes_of.put, frame->ext.bytes);
    return status;
}

static ring_status count_pull(transport_link *l, void *dst)
{
    const transport_frame *frame;
    const void *payload;
    const ring_status peeked = inner->peek(l, &frame, &payload);
    const uint64_t bytes = peeked == RING_OK ? transport_carried(frame) : 0;
    const ring_status status = inner->pull(l, dst);
    if (status == RING_OK)
        atomic_fetch_add(&bytes_of.pulled, bytes);
    return status;
}

/* Counts what passes the link from now on. A first call has opened it. */
static void count_link(const player *p)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    comm_lock(p->comm);
    channel *c = channel_find(p->comm, TRAFFIC_DEVICE, 0, 1 - p->rank);
    pthread_mutex_lock(&lock);
    if (inner == NULL) {
        inner = c->link->transport;
        table = *inner;
        table.send = count_send;
        table.put = inner->put != NULL ? count_put : NULL;
        table.pull = count_pull;
    }
    pthread_mutex_unlock(&lock);
    c->link->transport = &table;
    comm_unlock(p->comm);
}

/* The library copies no payload: over tcp the kernel does so at each end, over adapters that put,
 * nothing does. Threads count for both ends. */
static int call_that_counts(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT_OK(sum_and_wait(&p, COUNT));
    EXPECT_OK(ring_barrier(p.comm, NULL));
    count_link(&p);
    EXPECT_OK(ring_barrier(p.comm, NULL));
    EXPECT_OK(sum_and_wait(&p, COUNT));
    EXPECT_OK(ring_barrier(p.comm, NULL));
    const uint64_t ends = harness_kind_of(near) == HARNESS_THREADS ? 2 : 1;
    const bool puts = table.put != NULL;
    EXPECT(bytes_of.copied == 0, "%llu bytes", (unsigned long long)bytes_of.copied);
    EXPECT(bytes_of.put == (puts ? ends * BYTES : 0), "%llu bytes",
           (unsigned long long)bytes_of.put);
    EXPECT(bytes_of.lent == (puts ? 0 : ends * BYTES), "%llu bytes",
           (unsigned long long)bytes_of.lent);
    EXPECT(bytes_of.pulled == bytes_of.lent, "%llu bytes", (unsigned long long)bytes_of.pulled);
    EXPECT(expect_sum(&p, 0, COUNT) == 0, "rank %d", rank);
    EXPECT_OK(ring_barrier(p.comm, NULL)); /* another thread may count */
    leave(&p);
    return 0;
}

static void the_library_copies_no_bytes(void **state)
{
    assert_int_equal(run(2, call_that_counts), 0);
}

/* ---- Ranks that leave --------------------------------------------------------------------------
 */

static ring_status pass(const player *p, int peer, bool sends)
{
    ring_call call = RING_CALL_INIT;
    ring_work *started = NULL;
    call.stream = p->stream;
    call.work = &started;
    const ring_status status = sends ? ring_send((void *)(uintptr_t)p->src, COUNT, RING_INT32, peer,
                                                 p->comm, &call)
                                     : ring_recv((void *)(uintptr_t)p->dst, COUNT, RING_INT32, peer,
                                                 p->comm, &call);
    return status == RING_OK ? ring_wait(&started) : status;
}

static int expect_message(const player *p, int peer)
{
    EXPECT_CUDA(cu.copy_to_host_async(p->host, p->dst, BYTES, p->stream));
    EXPECT_CUDA(cu.stream_synchronize(p->stream));
    for (int i = 0; i < COUNT; i++)
        EXPECT(p->host[i] == element(peer, 0, i), "element %d: %d", i, p->host[i]);
    return 0;
}

/* Rank 1 ends its communicator as soon as its call has ended. Rank 0, on another host, receives all
 * of it, and goes on with rank 2. */
static int sender_leaves(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    if (rank == 0)
        usleep(200000);
    if (rank < 2)
        EXPECT_OK(pass(&p, 1 - rank, rank == 1));
    if (rank == 0)
        EXPECT(expect_message(&p, 1) == 0, "of rank 1");
    for (int i = 0; i < 3 && rank != 1; i++) {
        usleep(200000);
        EXPECT_OK(pass(&p, 2 - rank, rank == 2));
        EXPECT(rank == 2 || expect_message(&p, 2) == 0, "of rank 2");
        EXPECT_OK(ring_comm_status(p.comm));
    }
    leave(&p);
    return 0;
}

static void a_rank_may_leave_after_its_calls(void **state)
{
    assert_int_equal(run(3, sender_leaves), 0);
}

/* ---- Faults --------------------------------------------------------------------------------- */

/* Makes calls until one fails. Those that succeed are right. */
static int calls_over_a_bad_link(int rank, int ranks, harness_board *board, void *arg)
{
    enum { CALLS = 12 };
    ring_status status = RING_OK;
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    const double since = harness_now();
    for (int round = 0; round < CALLS && status == RING_OK; round++) {
        const int count = round % 2 == 0 ? COUNT : FEW;
        EXPECT(give(&p, round, count) == 0, "rank %d", rank);
        status = sum_and_wait(&p, count);
        if (status == RING_OK)
            EXPECT(expect_sum(&p, round, count) == 0, "rank %d", rank);
    }
    const bool may_fail = strstr(getenv("RING_FAULT"), "delay") == NULL;
    EXPECT(may_fail || status == RING_OK, "rank %d: %s", rank, ring_last_error(p.comm));
    EXPECT(harness_now() - since < 10 * HARNESS_PROMPT, "rank %d", rank);
    atomic_fetch_add(&board->counters[1], status != RING_OK);
    leave(&p);
    return 0;
}

/* RING_TIMEOUT ends a call whose frames are lost. */
static void calls_over_bad_links_are_right_or_fail(void **state)
{
    static const char *const faults[] = {"delay=0.0005",         "seed=1,drop=0.01",
                                         "seed=2,truncate=0.02", "seed=3,lie=0.02",
                                         "seed=4,lie=0.3",       "close=5000000",
                                         "close=100000"};
    setenv("RING_TIMEOUT", "4", 1);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        setenv("RING_FAULT", faults[i], 1);
        const int failed = run(2, calls_over_a_bad_link);
        if (failed != 0)
            fprintf(stderr, "RING_FAULT=%s\n", faults[i]);
        assert_int_equal(failed, 0);
    }
    unsetenv("RING_FAULT");
    unsetenv("RING_TIMEOUT");
}

/* ---- Faults in each phase ------------------------------------------------------------------- */

typedef struct trial {
    enum { BEFORE, STARTED, CARRIED, CAPTURED, REPLAYED } phase;
    enum { ABORT, DEADLINE, LOST, CUT } fault;
} trial;

static const char *const phases[] = {"before a call", "when only other hosts have made a call",
                                     "while frames are carried", "after a capture", "in a replay"};
static const char *const ends[] = {"abort", "deadline", "lost host", "cut wire"};

/* Rank 1 is alone on its host, and is what fails. */
static bool makes_call(const player *p, const trial *t)
{
    return p->rank != 1 || t->phase == CARRIED;
}

static uint64_t bytes_received(const player *p)
{
    comm_lock(p->comm);
    const uint64_t bytes = p->comm->info.bytes_received;
    comm_unlock(p->comm);
    return bytes;
}

/* Closes all connections of this process to other hosts. */
static void cut_wire(void)
{
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.ss_family != AF_UNIX)
            (void)shutdown(fd, SHUT_RDWR);
    }
}

/* Brings the rank to the phase, in which it has made its call or replay, or has captured one. */
static int reach(player *p, const trial *t, CUgraphExec *exec)
{
    const bool replays = t->phase == CAPTURED || t->phase == REPLAYED;
    if (t->phase == BEFORE)
        return 0;
    if (replays) {
        CUgraph graph;
        EXPECT_CUDA(cu.begin_capture(p->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        EXPECT_OK(sum(p, COUNT, NULL));
        EXPECT_CUDA(cu.end_capture(p->stream, &graph));
        EXPECT_CUDA(cu.graph_instantiate(exec, graph, 0));
        EXPECT_CUDA(cu.graph_launch(*exec, p->stream));
        EXPECT(expect_sum(p, 0, COUNT) == 0, "rank %d", p->rank);
        EXPECT_OK(ring_barrier(p->comm, NULL));
    }
    if (t->phase == REPLAYED && p->rank != 1)
        EXPECT_CUDA(cu.graph_launch(*exec, p->stream));
    if (!replays && makes_call(p, t))
        EXPECT_OK(sum(p, COUNT, NULL));
    if (t->phase == CARRIED && p->rank == 1)
        for (const double since = harness_now(); bytes_received(p) < FRAME; usleep(1000))
            EXPECT(harness_is_prompt(since), "no frame has arrived");
    return 0;
}

/* The streams of all ranks pass what has failed, the communicator says why, and later calls and
 * replays end at once. */
static int fault_in_a_phase(int rank, int ranks, harness_board *board, void *arg)
{
    static const ring_status expected[] = {RING_ERR_ABORTED, RING_ERR_TIMEOUT, RING_ERR_PEER,
                                           RING_ERR_PEER};
    const trial *t = arg;
    player p;
    CUgraphExec exec = NULL;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT_OK(ring_barrier(p.comm, NULL));
    EXPECT(reach(&p, t, &exec) == 0, "rank %d", rank);
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    const double since = harness_now();
    if (rank == 1 && t->fault == ABORT)
        EXPECT_OK(ring_comm_abort(p.comm, "enough"));
    if (rank == 1 && t->fault == LOST)
        raise(SIGKILL);
    if (rank == 1 && t->fault == CUT)
        cut_wire();
    if (rank == 1 && t->fault == DEADLINE) { /* its host stands still */
        comm_lock(p.comm);
        usleep(4000000);
        comm_unlock(p.comm);
    }
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    while (ring_comm_status(p.comm) == RING_OK && harness_is_prompt(since))
        usleep(1000);
    EXPECT(ring_comm_status(p.comm) == expected[t->fault], "rank %d: %d: %s", rank,
           (int)ring_comm_status(p.comm), ring_last_error(p.comm));
    EXPECT(sum_and_wait(&p, FEW) == expected[t->fault], "rank %d: a later call", rank);
    if (exec != NULL)
        EXPECT_CUDA(cu.graph_launch(exec, p.stream));
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    leave(&p);
    EXPECT(harness_is_prompt(since), "rank %d: the end took %.1f s", rank, harness_now() - since);
    return 0;
}

/* Ranks 0 and 2 are on one host, rank 1 on the other. */
static void faults_end_every_phase(void **state)
{
    if (harness_kind_of(near) == HARNESS_THREADS)
        skip_because("ranks are threads, which cannot be lost alone");
    for (int phase = BEFORE; phase <= REPLAYED; phase++)
        for (int fault = ABORT; fault <= CUT; fault++) {
            trial t = {phase, fault};
            if (fault == DEADLINE && (phase == BEFORE || phase == CAPTURED))
                continue; /* nothing waits */
            setenv("RING_FAULT", phase == CARRIED ? "delay=0.05" : "delay=0", 1);
            setenv("RING_TIMEOUT", fault == DEADLINE ? "3" : "60", 1);
            const int failed = run_with(3, fault_in_a_phase, &t) - (fault == LOST);
            if (failed != 0)
                fprintf(stderr, "%s %s\n", ends[fault], phases[phase]);
            assert_int_equal(failed, 0);
        }
    unsetenv("RING_FAULT");
    unsetenv("RING_TIMEOUT");
}

/* ---- Graphs --------------------------------------------------------------------------------- */

/* A replay after the communicator has ended changes nothing. */
static int replays(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    CUgraph graph;
    CUgraphExec exec;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT_CUDA(cu.begin_capture(p.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT_OK(sum(&p, FEW, NULL));
    EXPECT_CUDA(cu.end_capture(p.stream, &graph));
    EXPECT_CUDA(cu.graph_instantiate(&exec, graph, 0));
    for (int i = 0; i < REPLAYS; i++) {
        EXPECT_CUDA(cu.graph_launch(exec, p.stream));
        if (i % 100 != 0)
            continue;
        EXPECT(expect_sum(&p, i == 0 ? 0 : i - 100, FEW) == 0, "rank %d, replay %d", rank, i);
        EXPECT(give(&p, i, FEW) == 0, "rank %d", rank);
    }
    EXPECT(expect_sum(&p, (REPLAYS - 1) / 100 * 100, FEW) == 0, "rank %d", rank);
    EXPECT_OK(ring_barrier(p.comm, NULL));
    ring_comm_destroy(p.comm);
    EXPECT_CUDA(cu.set_bytes_async(p.dst, 0, FEW * 4, p.stream));
    EXPECT_CUDA(cu.graph_launch(exec, p.stream));
    EXPECT_CUDA(cu.copy_to_host_async(p.host, p.dst, FEW * 4, p.stream));
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    for (int i = 0; i < FEW; i++)
        EXPECT(p.host[i] == 0, "element %d is %d", i, p.host[i]);
    free(p.host);
    return 0;
}

static void graphs_replay_calls_until_the_end(void **state)
{
    assert_int_equal(run(2, replays), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_long_frames_are_in_flight),
        cmocka_unit_test(the_library_copies_no_bytes),
        cmocka_unit_test(a_rank_may_leave_after_its_calls),
        cmocka_unit_test(calls_over_bad_links_are_right_or_fail),
        cmocka_unit_test(faults_end_every_phase),
        cmocka_unit_test(graphs_replay_calls_until_the_end),
    };
    if (argc != 2)
        return 2;
    near = argv[1];
    harness_use(near);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
