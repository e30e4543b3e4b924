/* SPDX-License-Identifier: Apache-2.0
 * Tests launches that threads share because their ranks share a GPU, over the double of NVIDIA's
 * driver: calls of one thread for several ranks, communicators that are called in different orders,
 * and how calls end in each state of a launch.
 * Usage: test_coll_shared_launches all|order; order: without stopped streams, for launches that
 * return when their kernel has ended */
#include "harness.h"

#include "fake_cuda_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ROUNDS = 30 };
#else
enum { ROUNDS = 400 };
#endif
enum { COUNT = 1003, COMMS = 2, MOST_RANKS = 4, MOST_ROWS = 256, CHAIN = 9 };

static bool stops; /* streams may stop before a launch */
static cuda_table cu;
static fake_cuda_table fake;

/* ---- Ranks -------------------------------------------------------------------------------- */

/* A rank's communicators, with a stream and a buffer for each. */
typedef struct player {
    int rank, ranks;
    ring_comm *comms[COMMS];
    CUstream streams[COMMS];
    CUdeviceptr buffers[COMMS]; /* COUNT int32 */
    _Atomic uint32_t *words[COMMS];
    int meetings;
} player;

/* Any thread may make the calls of any rank. */
static player players[MOST_RANKS];

static int meet(player *p, harness_board *board)
{
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ++p->meetings * p->ranks), "a rank is late");
    return 0;
}

static int sit_down(player **out, int rank, int ranks, harness_board *board)
{
    CUcontext context;
    player *p = *out = &players[rank];
    *p = (player){.rank = rank, .ranks = ranks};
    EXPECT_CUDA(cu.primary_retain(&context, 0));
    EXPECT_CUDA(cu.set_current(context));
    EXPECT_OK(harness_join(rank, ranks, board, &p->comms[0]));
    EXPECT_OK(ring_comm_dup(p->comms[0], &p->comms[1]));
    for (int i = 0; i < COMMS; i++) {
        void *pinned;
        EXPECT_CUDA(cu.stream_create(&p->streams[i], CU_STREAM_NON_BLOCKING, 0));
        EXPECT_CUDA(cu.mem_alloc(&p->buffers[i], COUNT * sizeof(int32_t)));
        EXPECT_CUDA(cu.host_alloc(&pinned, sizeof *p->words[i], CU_MEMHOSTALLOC_DEVICEMAP));
        p->words[i] = pinned;
    }
    return meet(p, board);
}

static int leave(player *p, harness_board *board)
{
    EXPECT(meet(p, board) == 0, "rank %d", p->rank);
    for (int i = 0; i < COMMS; i++)
        EXPECT_CUDA(cu.stream_synchronize(p->streams[i]));
    for (int i = COMMS; i-- > 0;)
        ring_comm_destroy(p->comms[i]);
    for (int i = 0; i < COMMS; i++)
        EXPECT_CUDA(cu.stream_destroy(p->streams[i]));
    return meet(p, board);
}

static int fill(const player *p, int i)
{
    int32_t values[COUNT];
    for (int k = 0; k < COUNT; k++)
        values[k] = k + p->rank;
    EXPECT_CUDA(cu.copy_to_device_async(p->buffers[i], values, sizeof values, p->streams[i]));
    EXPECT_CUDA(cu.stream_synchronize(p->streams[i]));
    return 0;
}

/* @param sums  all_reduces in place since fill(). */
static int expect_sums(const player *p, int i, int sums)
{
    int32_t values[COUNT], times = 1;
    for (int n = 1; n < sums; n++)
        times *= p->ranks;
    EXPECT_CUDA(cu.copy_to_host_async(values, p->buffers[i], sizeof values, p->streams[i]));
    EXPECT_CUDA(cu.stream_synchronize(p->streams[i]));
    for (int k = 0; k < COUNT; k++) {
        const int32_t want = (p->ranks * k + p->ranks * (p->ranks - 1) / 2) * times;
        EXPECT(values[k] == want, "rank %d, communicator %d, element %d: %d, not %d", p->rank, i, k,
               values[k], want);
    }
    return 0;
}

static ring_status sum_in(const player *p, int i, CUstream stream, double timeout)
{
    void *buffer = (void *)(uintptr_t)p->buffers[i];
    ring_call call = RING_CALL_INIT;
    call.stream = stream;
    call.timeout = timeout;
    return ring_all_reduce(buffer, buffer, COUNT, RING_INT32, RING_SUM, p->comms[i], &call);
}

static ring_status sum(const player *p, int i)
{
    return sum_in(p, i, p->streams[i], 0);
}

static void run(int ranks, harness_body body)
{
    assert_int_equal(harness_run(HARNESS_THREADS, ranks, body, NULL, NULL), 0);
}

/* ---- Order -------------------------------------------------------------------------------- */

/* @return calls of the library whose names contain @p name. */
static uint64_t calls_of(const fake_cuda_census_row *rows, int count, const char *name)
{
    uint64_t sum = 0;
    for (int i = 0; i < count; i++)
        if (rows[i].of_library && strstr(rows[i].function, name) != NULL)
            sum += rows[i].calls;
    return sum;
}

/* The first rank's thread makes the calls of all, in streams of their own or in one. The launch
 * waits for an event of each other rank, and each other rank for an event of the launch. */
static int one_thread(int rank, int ranks, harness_board *board, void *arg)
{
    static fake_cuda_census_row rows[MOST_ROWS];
    player *p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    for (int round = 0; rank == 0 && round < 6; round++) {
        const int at = round % COMMS;
        for (int r = 0; r < ranks; r++)
            EXPECT(fill(&players[r], at) == 0, "rank %d", r);
        fake.census_begin();
        EXPECT_OK(ring_group_start());
        for (int r = 0; r < ranks; r++)
            EXPECT_OK(sum_in(&players[r], at, players[round < 3 ? r : 0].streams[at], 0));
        EXPECT_OK(ring_group_end());
        const int count = fake.census_end(rows, MOST_ROWS);
        EXPECT(calls_of(rows, count, "Cooperative") == 1, "not one launch");
        EXPECT(calls_of(rows, count, "WaitEvent") == 2 * (uint64_t)(ranks - 1), "no events");
        EXPECT_CUDA(cu.stream_synchronize(players[0].streams[at]));
        for (int r = 0; r < ranks; r++)
            EXPECT(expect_sums(&players[r], at, 1) == 0, "rank %d", r);
    }
    return leave(p, board);
}

/* Even ranks call the communicators in one order, odd ranks in the other; with groups, too. */
static int unlike_orders(int rank, int ranks, harness_board *board, void *arg)
{
    player *p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    for (int round = 0; round < ROUNDS / 10; round++) {
        for (int i = 0; i < COMMS; i++)
            EXPECT(fill(p, i) == 0, "rank %d", rank);
        if (round % 2 == 1)
            EXPECT_OK(ring_group_start());
        EXPECT_OK(sum(p, rank % 2));
        EXPECT_OK(sum(p, 1 - rank % 2));
        if (round % 2 == 1)
            EXPECT_OK(ring_group_end());
        for (int i = 0; i < COMMS; i++)
            EXPECT(expect_sums(p, i, 1) == 0, "rank %d", rank);
    }
    return leave(p, board);
}

/* The ranks come to calls at the same time or far apart, and change streams. */
static int drawn_times(int rank, int ranks, harness_board *board, void *arg)
{
    unsigned seed = (unsigned)rank + 1;
    player *p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    for (int round = 0; round < ROUNDS; round++) {
        const int at = round / 7 % COMMS, drawn = rand_r(&seed) % 8;
        EXPECT(fill(p, at) == 0, "rank %d", rank);
        if (drawn < 3)
            usleep((useconds_t)(drawn * 70));
        EXPECT_OK(sum_in(p, at, p->streams[at], 0));
        if (round % 5 == 0) { /* the communicator orders the two streams */
            EXPECT_OK(sum_in(p, at, p->streams[1 - at], 0));
            EXPECT_CUDA(cu.stream_synchronize(p->streams[1 - at]));
        }
        EXPECT(expect_sums(p, at, round % 5 == 0 ? 2 : 1) == 0, "rank %d, round %d", rank, round);
    }
    return leave(p, board);
}

typedef struct chain {
    player *of;
    _Atomic int done;
} chain;

/* Each end starts the next call, on the other communicator and in its stream. */
static void start_next(void *context, ring_status status)
{
    chain *c = context;
    const player *p = c->of;
    const int done = atomic_fetch_add(&c->done, status == RING_OK ? 1 : 100) + 1;
    void *buffer = (void *)(uintptr_t)p->buffers[0];
    ring_call call = RING_CALL_INIT;
    call.stream = p->streams[done % COMMS];
    call.on_done = start_next;
    call.context = c;
    if (status == RING_OK && done < CHAIN &&
        ring_all_reduce(buffer, buffer, COUNT, RING_INT32, RING_SUM, p->comms[done % COMMS],
                        &call) != RING_OK)
        atomic_fetch_add(&c->done, 100);
}

static int on_done_starts_calls(int rank, int ranks, harness_board *board, void *arg)
{
    player *p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    chain c = {.of = p};
    void *buffer = (void *)(uintptr_t)p->buffers[0];
    ring_call call = RING_CALL_INIT;
    EXPECT(fill(p, 0) == 0, "rank %d", rank);
    call.stream = p->streams[0];
    call.on_done = start_next;
    call.context = &c;
    EXPECT_OK(ring_all_reduce(buffer, buffer, COUNT, RING_INT32, RING_SUM, p->comms[0], &call));
    for (const double since = harness_now(); atomic_load(&c.done) < CHAIN;) {
        EXPECT(harness_is_prompt(since), "rank %d: %d calls", rank, atomic_load(&c.done));
        usleep(1000);
    }
    EXPECT(atomic_load(&c.done) == CHAIN, "rank %d: a call failed", rank);
    EXPECT(expect_sums(p, 0, CHAIN) == 0, "rank %d", rank);
    return leave(p, board);
}

/* A rank makes more calls than a stream has room for before the other one makes its first. */
static int far_ahead(int rank, int ranks, harness_board *board, void *arg)
{
    enum { CALLS = 500, LATE_US = 200000 };
    player *p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT_CUDA(cu.set_words_async(p->buffers[0], 0, COUNT, p->streams[0]));
    if (rank == 1)
        usleep(LATE_US);
    for (int i = 0; i < CALLS; i++)
        EXPECT_OK(sum(p, 0));
    EXPECT(fill(p, 0) == 0, "rank %d", rank);
    EXPECT_OK(sum(p, 0));
    EXPECT(expect_sums(p, 0, 1) == 0, "rank %d", rank);
    return leave(p, board);
}

/* In a group, the collective comes first on all ranks, although one of them has made it last. The
 * host drives the message, because the ranks share a GPU. */
static int message_and_sum(int rank, int ranks, harness_board *board, void *arg)
{
    enum { LONG = 1 << 20 };
    player *p;
    CUdeviceptr message;
    ring_call call = RING_CALL_INIT;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT_CUDA(cu.mem_alloc(&message, LONG));
    EXPECT(fill(p, 0) == 0, "rank %d", rank);
    void *there = (void *)(uintptr_t)message;
    call.stream = p->streams[0];
    EXPECT_OK(ring_group_start());
    if (rank == 0)
        EXPECT_OK(ring_send(there, LONG, RING_UINT8, 1, p->comms[0], &call));
    EXPECT_OK(sum(p, 0));
    if (rank == 1)
        EXPECT_OK(ring_recv(there, LONG, RING_UINT8, 0, p->comms[0], &call));
    EXPECT_OK(ring_group_end());
    EXPECT(expect_sums(p, 0, 1) == 0, "rank %d", rank);
    return leave(p, board);
}

static void test_a_rank_is_far_ahead(void **state)
{
    if (!stops)
        skip_because("a launch would wait for the stream that is stopped");
    run(2, far_ahead);
}

static void test_collectives_of_a_group_come_first(void **state)
{
    run(2, message_and_sum);
}

static void test_one_thread_calls_for_all_ranks(void **state)
{
    run(2, one_thread);
    run(4, one_thread);
}

static void test_orders_of_communicators_differ(void **state)
{
    run(2, unlike_orders);
    run(4, unlike_orders);
}

static void test_ranks_call_at_drawn_times(void **state)
{
    run(2, drawn_times);
    run(4, drawn_times);
}

static void test_on_done_starts_calls(void **state)
{
    run(2, on_done_starts_calls);
}

/* ---- Ends --------------------------------------------------------------------------------- */

/* Stops a rank's streams until open_streams(). */
static int close_streams(const player *p)
{
    for (int i = 0; i < COMMS; i++) {
        CUdeviceptr there;
        atomic_store(p->words[i], 0);
        EXPECT_CUDA(cu.host_device_pointer(&there, (void *)p->words[i], 0));
        EXPECT_CUDA(cu.stream_wait_value(p->streams[i], there, 1, CU_STREAM_WAIT_VALUE_GEQ));
    }
    return 0;
}

static void open_streams(const player *p)
{
    for (int i = 0; i < COMMS; i++)
        atomic_store(p->words[i], 1);
}

static int expect_end(const player *p, int i, ring_status status, const char *text)
{
    for (const double since = harness_now(); ring_comm_status(p->comms[i]) == RING_OK;) {
        EXPECT(harness_is_prompt(since), "rank %d: the call does not end", p->rank);
        usleep(1000);
    }
    EXPECT(ring_comm_status(p->comms[i]) == status, "rank %d: %s", p->rank,
           ring_last_error(p->comms[i]));
    EXPECT(strstr(ring_last_error(p->comms[i]), text) != NULL, "%s", ring_last_error(p->comms[i]));
    return 0;
}

/* The first rank's thread calls for one rank outside of a group, and the other rank never calls. */
static int one_of_two(int rank, int ranks, harness_board *board, void *arg)
{
    player *p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    if (rank == 0)
        EXPECT_OK(sum_in(p, 0, p->streams[0], 0.3));
    EXPECT(expect_end(p, 0, RING_ERR_TIMEOUT,
                      "rank 1 of this process, which shares the GPU, has "
                      "not made the call") == 0,
           "rank %d", rank);
    EXPECT(strstr(ring_last_error(p->comms[0]), "ring_group_start") != NULL, "no advice");
    return leave(p, board);
}

/* The ranks of a launch differ in their types, of which one is wider than the other. */
static int unlike_types(int rank, int ranks, harness_board *board, void *arg)
{
    player *p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    void *buffer = (void *)(uintptr_t)p->buffers[0];
    ring_call call = RING_CALL_INIT;
    call.stream = p->streams[0];
    (void)ring_all_reduce(buffer, buffer, rank == 0 ? COUNT : COUNT / 8,
                          rank == 0 ? RING_INT8 : RING_FLOAT64, RING_SUM, p->comms[0], &call);
    EXPECT(expect_end(p, 0, RING_ERR_MISMATCH, "") == 0, "rank %d", rank);
    return leave(p, board);
}

/* A launch that has not begun waits for events or for words. */
enum { BY_EVENTS, BY_WORDS };

/* Makes a call on stopped streams, for both ranks at the same time or one after the other. */
static int launch_on_stopped(player *p, int by, double timeout, harness_board *board)
{
    EXPECT(close_streams(p) == 0, "rank %d", p->rank);
    EXPECT(meet(p, board) == 0, "rank %d", p->rank);
    if (by == BY_WORDS) {
        if (p->rank == 1)
            EXPECT(meet(p, board) == 0, "rank %d", p->rank);
        EXPECT_OK(sum_in(p, 0, p->streams[0], timeout));
        if (p->rank == 0)
            EXPECT(meet(p, board) == 0, "rank %d", p->rank);
    } else if (p->rank == 0) {
        EXPECT_OK(ring_group_start());
        for (int r = 0; r < p->ranks; r++)
            EXPECT_OK(sum_in(&players[r], 0, players[r].streams[0], timeout));
        EXPECT_OK(ring_group_end());
    }
    return meet(p, board);
}

/* After the failure the streams pass the call, and the other communicator works. */
static int goes_on(player *p, harness_board *board)
{
    EXPECT(cu.stream_query(p->streams[0]) == CUDA_ERROR_NOT_READY, "the stream went on by itself");
    open_streams(p);
    EXPECT_CUDA(cu.stream_synchronize(p->streams[0]));
    EXPECT(fill(p, 1) == 0, "rank %d", p->rank);
    EXPECT_OK(sum(p, 1));
    EXPECT(expect_sums(p, 1, 1) == 0, "rank %d", p->rank);
    return leave(p, board);
}

static int deadline(int by, int rank, int ranks, harness_board *board)
{
    player *p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT(launch_on_stopped(p, by, 0.3, board) == 0, "rank %d", rank);
    EXPECT(expect_end(p, 0, RING_ERR_TIMEOUT, "the GPU has not completed the call") == 0, "rank %d",
           rank);
    return goes_on(p, board);
}

static int abortion(int by, int rank, int ranks, harness_board *board)
{
    player *p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    EXPECT(launch_on_stopped(p, by, 60, board) == 0, "rank %d", rank);
    if (rank == 1)
        EXPECT_OK(ring_comm_abort(p->comms[0], "enough"));
    EXPECT(expect_end(p, 0, RING_ERR_ABORTED, "enough") == 0, "rank %d", rank);
    return goes_on(p, board);
}

#define ENDS(name, body, by) \
    static int name(int rank, int ranks, harness_board *board, void *arg) \
    { \
        return body(by, rank, ranks, board); \
    }
ENDS(deadline_by_events, deadline, BY_EVENTS)
ENDS(deadline_by_words, deadline, BY_WORDS)
ENDS(abort_by_events, abortion, BY_EVENTS)
ENDS(abort_by_words, abortion, BY_WORDS)

/* Both ranks call in one stream, which waits at the first call for the second one, which comes
 * after it. The deadline ends both, and the stream goes on. */
static int one_stream_one_after_the_other(int rank, int ranks, harness_board *board, void *arg)
{
    player *p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    if (rank == 1)
        EXPECT(meet(p, board) == 0, "rank %d", rank);
    EXPECT_OK(sum_in(p, 0, players[0].streams[0], 0.3));
    if (rank == 0)
        EXPECT(meet(p, board) == 0, "rank %d", rank);
    EXPECT(expect_end(p, 0, RING_ERR_TIMEOUT, "not finished before its deadline") == 0, "rank %d",
           rank);
    EXPECT_CUDA(cu.stream_synchronize(players[0].streams[0]));
    return leave(p, board);
}

typedef struct ending {
    ring_comm *comm;
    useconds_t after;
    ring_status status;
} ending;

static void *end_later(void *arg)
{
    ending *e = arg;
    usleep(e->after);
    e->status = ring_comm_abort(e->comm, "enough");
    return NULL;
}

/* Another thread aborts while the ranks call, alone or in groups, so in any state of a launch. */
static int abort_at_drawn_times(int rank, int ranks, harness_board *board, void *arg)
{
    unsigned seed = (unsigned)rank + 7;
    player *p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0, "rank %d", rank);
    ring_comm *first = p->comms[0];
    for (int round = 0; round < 20; round++) {
        ring_status status = RING_OK;
        ending e = {.after = (useconds_t)rand_r(&seed) % 2000};
        pthread_t thread;
        EXPECT_OK(ring_comm_dup(first, &p->comms[0]));
        e.comm = p->comms[0];
        EXPECT(meet(p, board) == 0, "rank %d", rank);
        if (rank == 1)
            EXPECT(pthread_create(&thread, NULL, end_later, &e) == 0, "no thread");
        for (const double since = harness_now(); status == RING_OK;) {
            EXPECT(harness_is_prompt(since), "rank %d: calls do not fail", rank);
            const bool groups = rand_r(&seed) % 2 == 0;
            if (groups)
                EXPECT_OK(ring_group_start());
            status = sum_in(p, 0, p->streams[rand_r(&seed) % COMMS], 60);
            if (groups && ring_group_end() != RING_OK)
                status = RING_ERR_ABORTED;
            if (status == RING_OK)
                EXPECT_CUDA(cu.stream_synchronize(p->streams[rand_r(&seed) % COMMS]));
        }
        if (rank == 1)
            pthread_join(thread, NULL);
        EXPECT_OK(e.status);
        EXPECT(expect_end(p, 0, RING_ERR_ABORTED, "enough") == 0, "rank %d", rank);
        for (int i = 0; i < COMMS; i++)
            EXPECT_CUDA(cu.stream_synchronize(p->streams[i]));
        ring_comm_destroy(p->comms[0]);
    }
    p->comms[0] = first;
    return leave(p, board);
}

static void test_one_of_two_ranks_names_the_other(void **state)
{
    run(2, one_of_two);
}

static void test_types_of_a_launch_differ(void **state)
{
    run(2, unlike_types);
}

static void test_deadlines_end_launches(void **state)
{
    if (!stops)
        skip_because("a launch would wait for the stream that is stopped");
    run(2, deadline_by_events);
    run(2, deadline_by_words);
    run(2, one_stream_one_after_the_other);
}

static void test_aborts_end_launches(void **state)
{
    if (!stops)
        skip_because("a launch would wait for the stream that is stopped");
    run(2, abort_by_events);
    run(2, abort_by_words);
    run(2, abort_at_drawn_times);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_thread_calls_for_all_ranks),
        cmocka_unit_test(test_orders_of_communicators_differ),
        cmocka_unit_test(test_ranks_call_at_drawn_times),
        cmocka_unit_test(test_on_done_starts_calls),
        cmocka_unit_test(test_a_rank_is_far_ahead),
        cmocka_unit_test(test_collectives_of_a_group_come_first),
        cmocka_unit_test(test_one_of_two_ranks_names_the_other),
        cmocka_unit_test(test_types_of_a_launch_differ),
        cmocka_unit_test(test_deadlines_end_launches),
        cmocka_unit_test(test_aborts_end_launches),
    };
    if (argc != 2)
        return 2;
    stops = strcmp(argv[1], "order") != 0;
    cu = cuda_functions();
    fake = fake_cuda_functions();
    (void)cu.init(0); /* the GPU process is forked, so before there are threads */
    setenv("RING_TRANSPORT", "loop", 1);
    setenv("FAKE_CUDA_LIMITS", "1", 1);
    return cmocka_run_group_tests_name("coll.shared_launches", tests, NULL, NULL);
}
