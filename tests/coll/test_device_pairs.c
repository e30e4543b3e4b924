/* SPDX-License-Identifier: Apache-2.0
 * Tests sends, receives and v-forms that GPUs run themselves, over the double of NVIDIA's driver:
 * drawn groups, whose ranks list their calls in different orders, graphs, and how such calls fail.
 * Usage: test_coll_device_pairs own|processes RANKS: threads or processes, with a GPU each */
#include "harness.h"

#include "cuda_table.h"
#include "draw.h"
#include "fake_cuda_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ROUNDS = 2, REPLAYS = 6 };
#else
enum { ROUNDS = 12, REPLAYS = 60 };
#endif
enum { MOST = 48, BUFFER = 5 << 20, POISON = 0xa5, MOST_CENSUS = 1024 };

static bool forks;
static int all_ranks;
static cuda_table cu;
static pthread_once_t once = PTHREAD_ONCE_INIT;

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
    CUstream streams[3]; /* the first one is NULL: none */
    CUdeviceptr src, dst;
    unsigned char *host, *want; /* [BUFFER] */
} player;

static char *at(CUdeviceptr memory, size_t offset)
{
    return (char *)(uintptr_t)(memory + offset);
}

static int sit_down(player *p, int rank, int ranks, harness_board *board)
{
    CUcontext context;
    *p = (player){.rank = rank, .ranks = ranks, .host = malloc(BUFFER), .want = malloc(BUFFER)};
    EXPECT(p->host != NULL && p->want != NULL, "no memory");
    pthread_once(&once, load_driver);
    EXPECT_CUDA(cu.init(0));
    EXPECT_CUDA(cu.primary_retain(&context, rank));
    EXPECT_CUDA(cu.set_current(context));
    EXPECT_OK(harness_join(rank, ranks, board, &p->comm));
    EXPECT_CUDA(cu.stream_create(&p->streams[1], CU_STREAM_NON_BLOCKING, 0));
    EXPECT_CUDA(cu.stream_create(&p->streams[2], CU_STREAM_NON_BLOCKING, 0));
    EXPECT_CUDA(cu.mem_alloc(&p->src, BUFFER));
    EXPECT_CUDA(cu.mem_alloc(&p->dst, BUFFER));
    EXPECT_OK(ring_barrier(p->comm, NULL));
    return 0;
}

static int leave(player *p)
{
    if (ring_comm_status(p->comm) == RING_OK)
        EXPECT_OK(ring_barrier(p->comm, NULL));
    for (int i = 1; i < 3; i++)
        EXPECT_CUDA(cu.stream_synchronize(p->streams[i]));
    ring_comm_destroy(p->comm);
    for (int i = 1; i < 3; i++)
        EXPECT_CUDA(cu.stream_destroy(p->streams[i]));
    free(p->host);
    free(p->want);
    return 0;
}

/* ---- Drawn messages ------------------------------------------------------------------------ */

/* All ranks draw the same messages. */
typedef struct message {
    int from, to;
    size_t bytes, src, dst; /* offsets in the buffers of the two ranks */
} message;

typedef struct traffic {
    message of[MOST];
    int count;
} traffic;

static unsigned char byte_of(int round, const message *m, size_t i)
{
    return (unsigned char)(i * 7 + i / 251 + (size_t)(m->from * 31 + m->to * 17 + round * 13) +
                           m->bytes);
}

static traffic draw_traffic(int ranks, int round, int most, bool to_self)
{
    static const size_t sizes[] = {0, 1, 3, 16, 100, 1001, 4096, 20011, 65536, 131077, 300007};
    uint64_t state = test_seed() * 1000 + (uint64_t)round;
    size_t src[HARNESS_MAX_RANKS] = {0}, dst[HARNESS_MAX_RANKS] = {0};
    traffic t = {.count = 1 + (int)test_draw(&state, (uint64_t)most)};
    for (int i = 0; i < t.count; i++) {
        message *m = &t.of[i];
        m->from = (int)test_draw(&state, (uint64_t)ranks);
        m->to = (int)test_draw(&state, (uint64_t)ranks);
        if (m->to == m->from && !to_self)
            m->to = (m->from + 1) % ranks;
        m->bytes = sizes[test_draw(&state, sizeof sizes / sizeof *sizes)];
        if (test_draw(&state, 24) == 0)
            m->bytes = (1 << 20) + 5;
        m->src = src[m->from] + test_draw(&state, 20);
        m->dst = dst[m->to] + test_draw(&state, 20);
        src[m->from] = m->src + m->bytes;
        dst[m->to] = m->dst + m->bytes;
        if (src[m->from] > BUFFER || dst[m->to] > BUFFER)
            t.count = i; /* it and those after it have no room */
    }
    return t;
}

static int give(const player *p, const traffic *t, int round, CUstream stream)
{
    memset(p->host, POISON, BUFFER);
    memset(p->want, POISON, BUFFER);
    for (int i = 0; i < t->count; i++) {
        const message *m = &t->of[i];
        for (size_t k = 0; k < m->bytes && (m->from == p->rank || m->to == p->rank); k++) {
            const unsigned char byte = byte_of(round, m, k);
            if (m->from == p->rank)
                p->host[m->src + k] = byte;
            if (m->to == p->rank)
                p->want[m->dst + k] = byte;
        }
    }
    EXPECT_CUDA(cu.copy_to_device_async(p->src, p->host, BUFFER, stream));
    EXPECT_CUDA(cu.set_bytes_async(p->dst, POISON, BUFFER, stream));
    EXPECT_CUDA(cu.stream_synchronize(stream));
    return 0;
}

static int expect_traffic(const player *p, int round, CUstream stream)
{
    EXPECT_CUDA(cu.copy_to_host_async(p->host, p->dst, BUFFER, stream));
    EXPECT_CUDA(cu.stream_synchronize(stream));
    for (size_t i = 0; i < BUFFER; i++)
        EXPECT(p->host[i] == p->want[i], "rank %d, round %d, byte %zu: %d, not %d", p->rank, round,
               i, p->host[i], p->want[i]);
    return 0;
}

/* ---- Groups -------------------------------------------------------------------------------- */

static ring_status send_or_receive(const player *p, const message *m, bool sends, CUstream stream)
{
    ring_call call = RING_CALL_INIT;
    call.stream = stream;
    return sends ? ring_send(at(p->src, m->src), m->bytes, RING_UINT8, m->to, p->comm, &call)
                 : ring_recv(at(p->dst, m->dst), m->bytes, RING_UINT8, m->from, p->comm, &call);
}

/* @return true if an earlier call with the same peer and direction has not been made. */
static bool comes_later(const traffic *t, const bool *made, int call)
{
    const message *m = &t->of[call / 2];
    for (int i = call % 2; i < call; i += 2)
        if (!made[i] && t->of[i / 2].from == m->from && t->of[i / 2].to == m->to)
            return true;
    return false;
}

/* Makes this rank's calls in an order of its own: call 2 * k sends message k, and 2 * k + 1
 * receives it. */
static int make_calls(const player *p, const traffic *t, uint64_t *state, int streams)
{
    bool made[2 * MOST] = {false};
    int left = 0;
    for (int i = 0; i < 2 * t->count; i++) {
        made[i] = (i % 2 == 0 ? t->of[i / 2].from : t->of[i / 2].to) != p->rank;
        left += !made[i];
    }
    while (left > 0) {
        const int i = (int)test_draw(state, 2 * (uint64_t)t->count);
        if (made[i] || comes_later(t, made, i))
            continue;
        CUstream stream = p->streams[streams > 1 ? test_draw(state, (uint64_t)streams) : 1];
        EXPECT_OK(send_or_receive(p, &t->of[i / 2], i % 2 == 0, stream));
        made[i] = true;
        left--;
    }
    return 0;
}

static int drawn_groups(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    CUdeviceptr there;
    EXPECT_CUDA(cu.mem_alloc(&there, 4096 * sizeof(int32_t)));
    const uint64_t before = harness_messages_sent(p.comm);
    const int rounds = test_is_long() ? 8 * ROUNDS : ROUNDS;
    for (int round = 0; round < rounds; round++) {
        const traffic t = draw_traffic(ranks, round, round % 2 == 0 ? MOST : 2 * ranks, true);
        uint64_t state = (uint64_t)round * 100 + (uint64_t)rank;
        EXPECT(give(&p, &t, round, p.streams[1]) == 0, "rank %d", rank);
        EXPECT_OK(ring_group_start());
        const bool sums = round % 3 == 0; /* before the messages on odd ranks, after them on even */
        for (int half = 0; half < 2; half++) {
            if (half == rank % 2)
                EXPECT(make_calls(&p, &t, &state, 3) == 0, "rank %d", rank);
            else if (sums)
                EXPECT_OK(ring_all_reduce(at(there, 0), at(there, 0), 4096, RING_INT32, RING_MAX,
                                          p.comm, NULL));
        }
        EXPECT_OK(ring_group_end());
        EXPECT_CUDA(cu.stream_synchronize(p.streams[2]));
        EXPECT(expect_traffic(&p, round, p.streams[1]) == 0, "rank %d", rank);
        if (round % 5 == 0)
            EXPECT_OK(ring_all_reduce(at(there, 0), at(there, 0), 4096, RING_INT32, RING_MAX,
                                      p.comm, NULL));
    }
    EXPECT(harness_messages_sent(p.comm) == before, "the host has moved messages");
    EXPECT_OK(ring_comm_status(p.comm));
    return leave(&p);
}

/* Ranks 0 and 1 exchange messages one after the other, without groups; rank 0 answers each. */
static int ping_pong(int rank, int ranks, harness_board *board, void *arg)
{
    static const size_t sizes[] = {0, 1, 4096, 70001, 1 << 20, (4 << 20) + 3};
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    const uint64_t before = harness_messages_sent(p.comm);
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
        const traffic t = {.of = {{1, 0, sizes[i], 1, 8}, {0, 1, sizes[i], 0, 3}}, .count = 2};
        EXPECT(give(&p, &t, i, p.streams[1]) == 0, "rank %d", rank);
        for (int k = 0; k < 2 && rank < 2; k++)
            EXPECT_OK(send_or_receive(&p, &t.of[k], t.of[k].from == rank, p.streams[i % 3]));
        EXPECT_CUDA(cu.stream_synchronize(p.streams[2]));
        EXPECT(expect_traffic(&p, i, p.streams[1]) == 0, "rank %d", rank);
    }
    EXPECT(harness_messages_sent(p.comm) == before, "the host has moved messages");
    return leave(&p);
}

/* Each group has more messages than fit into the arguments of a launch, and there are more groups
 * than have room at once. */
static int many_messages(int rank, int ranks, harness_board *board, void *arg)
{
    enum { EACH = 150, GROUPS = 300, BYTES = 9 };
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    const int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    memset(p.host, 0, BUFFER);
    for (int i = 0; i < EACH * BYTES; i++)
        p.host[i] = (unsigned char)(i % 101 + rank * 3);
    EXPECT_CUDA(cu.copy_to_device_async(p.src, p.host, BUFFER, p.streams[1]));
    ring_call call = RING_CALL_INIT;
    call.stream = p.streams[1];
    const uint64_t before = harness_messages_sent(p.comm);
    for (int g = 0; g < (forks ? GROUPS / 10 : GROUPS); g++) {
        EXPECT_OK(ring_group_start());
        for (size_t i = 0; i < EACH; i++) {
            EXPECT_OK(ring_send(at(p.src, i * BYTES), BYTES, RING_UINT8, to, p.comm, &call));
            EXPECT_OK(ring_recv(at(p.dst, i * BYTES), BYTES, RING_UINT8, from, p.comm, &call));
        }
        EXPECT_OK(ring_group_end());
    }
    EXPECT(harness_messages_sent(p.comm) == before, "the host has moved messages");
    EXPECT_CUDA(cu.copy_to_host_async(p.host, p.dst, EACH * BYTES, p.streams[1]));
    EXPECT_CUDA(cu.stream_synchronize(p.streams[1]));
    for (int i = 0; i < EACH * BYTES; i++)
        EXPECT(p.host[i] == (unsigned char)(i % 101 + from * 3), "rank %d, byte %d", rank, i);
    return leave(&p);
}

/* The host drives a send to this rank itself whose receive is not in its group. */
static int to_itself(int rank, int ranks, harness_board *board, void *arg)
{
    const traffic t = {.of = {{rank, rank, 5000, 3, 4}}, .count = 1};
    player p;
    ring_work *work;
    ring_call call = RING_CALL_INIT;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    for (int round = 0; round < 3; round++) {
        EXPECT(give(&p, &t, round, p.streams[1]) == 0, "rank %d", rank);
        call.work = &work;
        if (round == 1)
            EXPECT_OK(ring_group_start());
        EXPECT_OK(ring_send(at(p.src, 3), 5000, RING_UINT8, rank, p.comm, &call));
        if (round == 1)
            EXPECT_OK(ring_group_end());
        EXPECT_OK(ring_group_start());
        EXPECT_OK(ring_recv(at(p.dst, 4), 5000, RING_UINT8, rank, p.comm, NULL));
        EXPECT_OK(ring_group_end());
        EXPECT_OK(ring_wait(&work));
        EXPECT(expect_traffic(&p, round, p.streams[1]) == 0, "rank %d", rank);
    }
    return leave(&p);
}

/* Messages of a rank to itself are matched in their order, whatever memory they are in. */
static int to_itself_from_both(int rank, int ranks, harness_board *board, void *arg)
{
    enum { BYTES = 3000 };
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    memset(p.host, 1, BYTES);
    EXPECT_CUDA(cu.set_bytes_async(p.src, 2, BYTES, p.streams[1]));
    EXPECT_CUDA(cu.stream_synchronize(p.streams[1]));
    EXPECT_OK(ring_group_start());
    EXPECT_OK(ring_send(p.host, BYTES, RING_UINT8, rank, p.comm, NULL));
    EXPECT_OK(ring_send(at(p.src, 0), BYTES, RING_UINT8, rank, p.comm, NULL));
    EXPECT_OK(ring_recv(at(p.dst, 0), BYTES, RING_UINT8, rank, p.comm, NULL));
    EXPECT_OK(ring_recv(p.want, BYTES, RING_UINT8, rank, p.comm, NULL));
    EXPECT_OK(ring_group_end());
    EXPECT_CUDA(cu.copy_to_host_async(p.host, p.dst, BYTES, p.streams[1]));
    EXPECT_CUDA(cu.stream_synchronize(p.streams[1]));
    EXPECT(p.host[BYTES - 1] == 1 && p.want[BYTES - 1] == 2, "%d, %d", p.host[BYTES - 1],
           p.want[BYTES - 1]);
    return leave(&p);
}

/* A group is one launch on each rank. */
static int one_launch(int rank, int ranks, harness_board *board, void *arg)
{
    static fake_cuda_census_row rows[MOST_CENSUS];
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    const fake_cuda_table fake = fake_cuda_functions();
    const bool counts = forks || rank == 0;
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    if (counts)
        fake.census_begin();
    atomic_fetch_add(&board->counters[1], 1);
    EXPECT(harness_await(board, 1, ranks), "a rank is late");
    ring_call call = RING_CALL_INIT;
    call.stream = p.streams[1];
    EXPECT_OK(ring_group_start());
    for (int i = 0; i < ranks; i++) {
        const size_t place = (size_t)i * 1000;
        EXPECT_OK(ring_send(at(p.src, place), 1000, RING_UINT8, i, p.comm, &call));
        EXPECT_OK(ring_recv(at(p.dst, place), 1000, RING_UINT8, i, p.comm, &call));
    }
    EXPECT_OK(ring_group_end());
    atomic_fetch_add(&board->counters[2], 1);
    EXPECT(harness_await(board, 2, ranks), "a rank is late");
    if (counts) {
        const int count = fake.census_end(rows, MOST_CENSUS);
        const fake_cuda_census sum = fake.census_sum(rows, count, true, 0);
        const uint64_t of = forks ? 1 : (uint64_t)ranks;
        EXPECT(sum.launches == of && sum.copies + sum.synchronisations + sum.allocations == 0,
               "%d launches", (int)sum.launches);
    }
    return leave(&p);
}

static void test_groups_are_right(void **state)
{
    for (int ranks = 2; ranks <= all_ranks; ranks += ranks < 4 ? 1 : 4)
        run(ranks, drawn_groups);
    run(2, ping_pong);
    run(2, many_messages);
    run(2, to_itself);
    run(2, to_itself_from_both);
    run(3, one_launch);
}

/* A collective of a group runs before the group's sends and receives, so it may end while they
 * wait, although it was called after them. */
static int collective_first(int rank, int ranks, harness_board *board, void *arg)
{
    ring_work *works[2] = {NULL, NULL};
    ring_call call = RING_CALL_INIT;
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT_OK(ring_group_start());
    call.work = &works[0];
    if (rank == 0)
        EXPECT_OK(ring_recv(at(p.dst, 4096), 16, RING_INT32, 1, p.comm, &call));
    call.work = &works[1];
    EXPECT_OK(ring_all_reduce(at(p.src, 0), at(p.dst, 0), 16, RING_INT32, RING_SUM, p.comm, &call));
    EXPECT_OK(ring_group_end());
    EXPECT_OK(ring_wait(&works[1]));
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, 2), "rank %d", rank);
    if (rank == 0)
        EXPECT_OK(ring_wait(&works[0]));
    else
        EXPECT_OK(ring_send(at(p.src, 0), 16, RING_INT32, 0, p.comm, NULL));
    return leave(&p);
}

static void test_collectives_of_groups_end_first(void **state)
{
    run(2, collective_first);
}

/* ---- Graphs ------------------------------------------------------------------------------- */

/* One capture has a group in two streams, with more messages than fit into a launch's arguments. */
static int captured(int rank, int ranks, harness_board *board, void *arg)
{
    enum { EACH = 40 };
    player p;
    CUgraph graph;
    CUgraphExec exec;
    CUevent fork, join;
    traffic t = {.count = 0};
    for (int i = 0; i < EACH; i++)
        t.of[t.count++] = (message){i % 2, (i + 1) % 2, i % 7 == 0 ? 70000 : 300, (size_t)i * 80000,
                                    (size_t)i * 80001};
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT_CUDA(cu.event_create(&fork, CU_EVENT_DISABLE_TIMING));
    EXPECT_CUDA(cu.event_create(&join, CU_EVENT_DISABLE_TIMING));
    EXPECT_CUDA(cu.begin_capture(p.streams[1], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT_CUDA(cu.event_record(fork, p.streams[1]));
    EXPECT_CUDA(cu.stream_wait_event(p.streams[2], fork, 0));
    EXPECT_OK(ring_group_start());
    for (int twice = 0; twice < 2; twice++)
        for (int i = 0; i < EACH; i++)
            EXPECT_OK(send_or_receive(&p, &t.of[i], t.of[i].from == rank, p.streams[1 + i % 2]));
    EXPECT_OK(ring_group_end());
    EXPECT_CUDA(cu.event_record(join, p.streams[2]));
    EXPECT_CUDA(cu.stream_wait_event(p.streams[1], join, 0));
    EXPECT_CUDA(cu.end_capture(p.streams[1], &graph));
    EXPECT_CUDA(cu.graph_instantiate(&exec, graph, 0));
    EXPECT_CUDA(cu.graph_destroy(graph));
    for (int i = 0; i < REPLAYS; i++) {
        if (i % 20 == 0)
            EXPECT(give(&p, &t, i, p.streams[1]) == 0, "rank %d", rank);
        EXPECT_CUDA(cu.graph_launch(exec, p.streams[1]));
        if (i % 20 == 0)
            EXPECT(expect_traffic(&p, i, p.streams[1]) == 0, "rank %d", rank);
    }
    EXPECT_CUDA(cu.stream_synchronize(p.streams[1]));
    EXPECT(give(&p, &t, 7, p.streams[1]) == 0, "rank %d", rank); /* calls and replays mix */
    uint64_t state = (uint64_t)rank;
    EXPECT_OK(ring_group_start());
    EXPECT(make_calls(&p, &t, &state, 1) == 0, "rank %d", rank);
    EXPECT_OK(ring_group_end());
    EXPECT(expect_traffic(&p, 7, p.streams[1]) == 0, "rank %d", rank);
    EXPECT_CUDA(cu.graph_exec_destroy(exec));
    EXPECT_CUDA(cu.event_destroy(fork));
    EXPECT_CUDA(cu.event_destroy(join));
    return leave(&p);
}

static void test_graphs_replay_groups(void **state)
{
    run(2, captured);
}

/* ---- How calls fail ----------------------------------------------------------------------- */

/* One rank's part of a case that fails. It may go on until the end of the communicator. */
typedef struct failing {
    ring_status status;
    const char *text;
    double timeout; /* 0: none of its own */
    void (*play)(player *p, ring_call *call);
} failing;

static void send_bytes(player *p, void *from, size_t bytes, ring_dtype dtype, int to,
                       const ring_call *call)
{
    (void)ring_send(from, bytes / ring_dtype_size(dtype), dtype, to, p->comm, call);
}

static void recv_bytes(player *p, void *to, size_t bytes, int from, const ring_call *call)
{
    (void)ring_recv(to, bytes / sizeof(int32_t), RING_INT32, from, p->comm, call);
}

static void other_sizes(player *p, ring_call *call)
{
    if (p->rank == 0)
        send_bytes(p, at(p->src, 0), 400, RING_INT32, 1, call);
    else if (p->rank == 1)
        recv_bytes(p, at(p->dst, 0), 8 << 18, 0, call);
}

static void other_types(player *p, ring_call *call)
{
    if (p->rank == 0)
        send_bytes(p, at(p->src, 0), 400, RING_FLOAT32, 1, call);
    else if (p->rank == 1)
        recv_bytes(p, at(p->dst, 0), 400, 0, call);
}

static void other_calls(player *p, ring_call *call)
{
    if (p->rank == 0)
        send_bytes(p, at(p->src, 0), 400, RING_INT32, 1, call);
    else
        (void)ring_all_reduce(at(p->src, 0), at(p->dst, 0), 100, RING_INT32, RING_SUM, p->comm,
                              call);
}

static void late(player *p, ring_call *call)
{
    if (p->rank == 0)
        recv_bytes(p, at(p->dst, 0), 400, 1, call);
}

/* The receive from rank 2 is fine, that from rank 1 meets memory of the host. */
static void host_sends(player *p, ring_call *call)
{
    if (p->rank == 0) {
        (void)ring_group_start();
        recv_bytes(p, at(p->dst, 0), 400, 2, call);
        recv_bytes(p, at(p->dst, 400), 400, 1, call);
        (void)ring_group_end();
    } else if (p->rank == 1) {
        send_bytes(p, p->host, 400, RING_INT32, 0, NULL);
    } else {
        send_bytes(p, at(p->src, 0), 400, RING_INT32, 0, call);
    }
}

static void host_receives(player *p, ring_call *call)
{
    if (p->rank == 0)
        send_bytes(p, at(p->src, 0), 400, RING_INT32, 1, call);
    else if (p->rank == 1)
        recv_bytes(p, p->host, 400, 0, NULL);
}

/* Ranks 0 and 1 exchange blocks, rank 1 with memory of the host; rank 2 has none. */
static void host_exchanges(player *p, ring_call *call)
{
    const size_t counts[3] = {p->rank < 2 ? 9 : 0, p->rank < 2 ? 9 : 0, 0};
    const bool hosts = p->rank == 1;
    (void)ring_all_to_all_v(hosts ? (char *)p->host : at(p->src, 0), counts, NULL,
                            hosts ? (char *)p->want : at(p->dst, 0), counts, NULL, RING_INT32,
                            p->comm, hosts ? NULL : call);
}

/* Rank 0 sends rank 1 more than it expects. */
static void other_blocks(player *p, ring_call *call)
{
    const size_t out[3] = {1, p->rank == 0 ? 5 : 1, 1}, in[3] = {1, 1, 1};
    (void)ring_all_to_all_v(at(p->src, 0), out, NULL, at(p->dst, 0), in, NULL, RING_INT32, p->comm,
                            call);
}

static void ended(player *p, ring_call *call)
{
    if (p->rank == 0)
        recv_bytes(p, at(p->dst, 0), 400, 1, call);
    else if (p->rank == 1)
        (void)ring_comm_abort(p->comm, "enough");
}

static const failing failures[] = {
    {RING_ERR_MISMATCH, "called send #0 (count 100, int32, run by GPUs)", 0, other_sizes},
    {RING_ERR_MISMATCH, "(count 100, float32, run by GPUs)", 0, other_types},
    {RING_ERR_MISMATCH, "(count 100, int32, run by GPUs)", 0, other_calls},
    {RING_ERR_MISMATCH, "sends 5 elements", 0, other_blocks},
    {RING_ERR_MISMATCH, "run by GPUs", 0, host_sends},
    {RING_ERR_MISMATCH, "run by GPUs", 0, host_receives},
    {RING_ERR_MISMATCH, "run by GPUs", 0, host_exchanges},
    {RING_ERR_TIMEOUT, "waiting for rank 1", 0.3, late},
    {RING_ERR_ABORTED, "enough", 0, ended},
};

static int fails(int rank, int ranks, harness_board *board, void *arg)
{
    const failing *f = arg;
    player p;
    ring_call call = RING_CALL_INIT;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    const double since = harness_now();
    call.stream = p.streams[1];
    call.timeout = f->timeout;
    f->play(&p, &call);
    EXPECT_CUDA(cu.stream_synchronize(p.streams[1]));
    while (ring_comm_status(p.comm) == RING_OK && harness_is_prompt(since))
        usleep(1000);
    EXPECT(ring_comm_status(p.comm) == f->status, "%d: %s", (int)ring_comm_status(p.comm),
           ring_last_error(p.comm));
    EXPECT(strstr(ring_last_error(p.comm), f->text) != NULL, "%s", ring_last_error(p.comm));
    return leave(&p);
}

static void test_failures_name_the_peer(void **state)
{
    const harness_kind kind = forks ? HARNESS_PROCESSES : HARNESS_THREADS;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        failing f = failures[i];
        if (harness_run(kind, 3, fails, &f, NULL) != 0)
            fail_msg("case %zu", i);
    }
}

/* Rank 2 has no blocks. Rank 1 is so late that rank 0 reports its call. The blocks are in memory of
 * GPUs, then of the host. */
static int idle_rank(int rank, int ranks, harness_board *board, void *arg)
{
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    for (int hosts = 0; hosts < 2; hosts++) {
        const size_t counts[3] = {rank < 2 ? 9 : 0, rank < 2 ? 9 : 0, 0};
        char *src = hosts ? (char *)p.host : at(p.src, 0),
             *dst = hosts ? (char *)p.want : at(p.dst, 0);
        if (rank == 1)
            usleep(1300000);
        EXPECT_OK(
            ring_all_to_all_v(src, counts, NULL, dst, counts, NULL, RING_INT32, p.comm, NULL));
        EXPECT_OK(ring_barrier(p.comm, NULL));
    }
    return leave(&p);
}

/* Rank 0 waits for a message from a GPU, and meanwhile the next one arrives, in memory of the host.
 */
static int host_overtakes(int rank, int ranks, harness_board *board, void *arg)
{
    enum { BYTES = 400, LATE_US = 800000 };
    player p;
    void *pinned;
    CUdeviceptr word;
    ring_call call = RING_CALL_INIT;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT_CUDA(cu.host_alloc(&pinned, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP));
    EXPECT_CUDA(cu.host_device_pointer(&word, pinned, 0));
    atomic_store((_Atomic uint32_t *)pinned, 0);
    memset(p.host, 5 + rank, BYTES);
    if (rank == 1) {
        call.stream = p.streams[1];
        EXPECT_CUDA(cu.stream_wait_value(call.stream, word, 1, CU_STREAM_WAIT_VALUE_GEQ));
        EXPECT_OK(ring_send(at(p.src, 0), BYTES, RING_UINT8, 0, p.comm, &call));
        EXPECT_OK(ring_send(p.host, BYTES, RING_UINT8, 0, p.comm, NULL));
        usleep(LATE_US);
        atomic_store((_Atomic uint32_t *)pinned, 1);
    } else {
        EXPECT_OK(ring_recv(at(p.dst, 0), BYTES, RING_UINT8, 1, p.comm, NULL));
        EXPECT_OK(ring_recv(p.host, BYTES, RING_UINT8, 1, p.comm, NULL));
        EXPECT(p.host[0] == 6 && p.host[BYTES - 1] == 6, "wrong bytes");
    }
    return leave(&p);
}

static void test_messages_of_the_host_may_arrive_first(void **state)
{
    run(2, host_overtakes);
}

static void test_a_rank_without_blocks_does_not_matter(void **state)
{
    run(3, idle_rank);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_are_right),
        cmocka_unit_test(test_collectives_of_groups_end_first),
        cmocka_unit_test(test_graphs_replay_groups),
        cmocka_unit_test(test_failures_name_the_peer),
        cmocka_unit_test(test_a_rank_without_blocks_does_not_matter),
        cmocka_unit_test(test_messages_of_the_host_may_arrive_first),
    };
    if (argc != 3)
        return 2;
    forks = strcmp(argv[1], "processes") == 0;
    all_ranks = atoi(argv[2]);
    harness_use(forks ? "shm" : "loop");
    if (!forks) { /* the GPU process is forked, so before there are threads */
        pthread_once(&once, load_driver);
        (void)cu.init(0);
    }
    return cmocka_run_group_tests_name("coll.device_pairs", tests, NULL, NULL);
}
