/* SPDX-License-Identifier: Apache-2.0
 * Groups of calls: they start together, whatever their order. Usage: test_coll_call_group TRANSPORT
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

/* Outside of the communicator: the first failure ends calls of all ranks. */
static void meet(harness_board *board, int round, int ranks)
{
    atomic_fetch_add(&board->counters[round], 1);
    while (atomic_load(&board->counters[round]) < ranks)
        usleep(1000);
}

/* ---- Exchanges ----------------------------------------------------------------------------- */

static int32_t value(int from, int to, size_t i, int round)
{
    return (int32_t)((size_t)(from * 64 + to) * 1000003 + i + (size_t)round);
}

/* All pairs, and each rank with itself: no two ranks in the same order, sends first. */
static int exchange(int rank, int ranks, ring_comm *comm, size_t count, int round)
{
    const size_t all = count * (size_t)ranks;
    int32_t *out = malloc(all * sizeof *out), *in = calloc(all, sizeof *in);
    for (size_t i = 0; i < all; i++)
        out[i] = value(rank, (int)(i / count), i % count, round);
    EXPECT_OK(ring_group_start());
    for (int k = 0; k < ranks; k++) {
        const int to = (rank * 3 + k) % ranks;
        EXPECT_OK(ring_send(out + (size_t)to * count, count, RING_INT32, to, comm, NULL));
    }
    EXPECT_OK(ring_group_start());
    for (int k = 0; k < ranks; k++)
        EXPECT_OK(ring_recv(in + (size_t)k * count, count, RING_INT32, k, comm, NULL));
    EXPECT_OK(ring_group_end());
    EXPECT(in[0] == 0 && in[all - 1] == 0, "an inner end has started the calls");
    EXPECT_OK(ring_group_end());
    for (size_t i = 0; i < all; i++)
        EXPECT(in[i] == value((int)(i / count), rank, i % count, round), "element %zu", i);
    free(in);
    free(out);
    return 0;
}

static int all_pairs_exchange_long_messages_without_handles(int rank, int ranks,
                                                            harness_board *board, void *arg)
{
    static const size_t counts[] = {1, 1000, 300000};
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    for (int round = 0; round < 6; round++)
        if (exchange(rank, ranks, comm, counts[round % 3], round) != 0)
            return 1;
    ring_comm_destroy(comm);
    return 0;
}

/* More programs than a communicator keeps: those of kept calls stay. */
static int a_group_holds_more_calls_than_a_cache(ring_comm *comm, int rank, int ranks,
                                                 harness_board *board)
{
    enum { MANY = 300 };
    static _Thread_local int32_t in[MANY][MANY], out[MANY];
    for (int i = 0; i < MANY; i++)
        out[i] = rank * MANY + i;
    EXPECT_OK(ring_group_start());
    for (size_t i = 0; i < MANY; i++) {
        EXPECT_OK(ring_send(out, i + 1, RING_INT32, 1 - rank, comm, NULL));
        EXPECT_OK(ring_recv(in[i], i + 1, RING_INT32, 1 - rank, comm, NULL));
    }
    EXPECT_OK(ring_group_end());
    for (int i = 0; i < MANY; i++)
        for (int k = 0; k <= i; k++)
            EXPECT(in[i][k] == (1 - rank) * MANY + k, "%d of %d: %d", k, i, (int)in[i][k]);
    return 0;
}

/* ---- Options of calls ------------------------------------------------------------------------ */

static void count_done(void *context, ring_status status)
{
    atomic_fetch_add((_Atomic int *)context, status == RING_OK ? 1 : 100);
}

static ring_status gather_uneven(int rank, int ranks, const int32_t *src, int32_t *dst,
                                 ring_comm *comm)
{
    size_t counts[8]; /* gone before the group ends */
    for (int r = 0; r < ranks; r++)
        counts[r] = (size_t)r + 1;
    const ring_status status = ring_all_gather_v(src + rank, dst, counts, NULL, RING_INT32, comm,
                                                 NULL);
    memset(counts, 0xff, sizeof counts);
    return status;
}

static int handles_events_and_callbacks_of_a_group(ring_comm *comm, int rank, int ranks,
                                                   harness_board *board)
{
    enum { LONG = 200000 };
    ring_event *event;
    ring_work *work = (ring_work *)(uintptr_t)1;
    _Atomic int done = 0;
    int32_t small = rank + 1, src[8] = {0, 1, 2, 3, 4, 5, 6, 7}, dst[36] = {0};
    int32_t *x = calloc(LONG, sizeof *x), *y = calloc(LONG, sizeof *y);
    EXPECT_OK(ring_event_create(&event));
    ring_call with_work = RING_CALL_INIT, with_done = RING_CALL_INIT;
    with_work.work = &work;
    with_work.after = event;
    with_done.on_done = count_done;
    with_done.context = &done;
    EXPECT_OK(ring_group_start());
    EXPECT_OK(ring_all_reduce(x, x, LONG, RING_INT32, RING_SUM, comm, &with_work));
    EXPECT(work == NULL, "a handle before the end");
    EXPECT_OK(ring_all_reduce(&small, &small, 1, RING_INT32, RING_SUM, comm, NULL));
    EXPECT_OK(ring_broadcast(y, y, LONG, RING_INT32, 0, comm, &with_done));
    EXPECT_OK(gather_uneven(rank, ranks, src, dst, comm));
    EXPECT_OK(ring_barrier(comm, NULL));
    EXPECT(small == rank + 1 && done == 0, "a call began before the end");
    memset(&with_work, 0xff, sizeof with_work); /* read when the calls were made */
    ring_event *held = event;
    for (size_t i = 0; i < LONG; i++)
        x[i] = y[i] = rank + 1;
    EXPECT_OK(ring_event_set(held, RING_OK));
    ring_event_destroy(held);
    EXPECT_OK(ring_group_end());
    EXPECT(small == ranks * (ranks + 1) / 2, "sum %d", (int)small);
    for (int r = 0, at = 0; r < ranks; r++)
        for (int i = 0; i <= r; i++, at++)
            EXPECT(dst[at] == r + i, "gathered %d at %d", (int)dst[at], at);
    EXPECT(work != NULL, "no handle");
    EXPECT_OK(ring_wait(&work));
    EXPECT(x[0] == small && x[LONG - 1] == small, "sum %d", (int)x[0]);
    for (const double end = harness_now() + 10; done == 0 && harness_now() < end;)
        usleep(1000);
    EXPECT(done == 1 && y[LONG - 1] == 1, "done %d, %d", done, (int)y[LONG - 1]);
    free(x);
    free(y);
    return 0;
}

/* ---- Several communicators --------------------------------------------------------------------
 */

static int two_communicators(int rank, int ranks, harness_board *board, void *arg)
{
    enum { LONG = 400000 };
    ring_comm *comms[2];
    EXPECT_OK(harness_join(rank, ranks, board, &comms[0]));
    EXPECT_OK(ring_comm_dup(comms[0], &comms[1]));
    int32_t *x[2];
    for (int i = 0; i < 2; i++) {
        x[i] = calloc(LONG, sizeof *x[i]);
        x[i][LONG - 1] = rank + i;
    }
    EXPECT_OK(ring_group_start());
    for (int k = 0; k < 2; k++) { /* not in the same order on all ranks */
        const int i = (k + rank) % 2;
        EXPECT_OK(ring_all_reduce(x[i], x[i], LONG, RING_INT32, RING_SUM, comms[i], NULL));
    }
    EXPECT_OK(ring_group_end());
    for (int i = 0; i < 2; i++) {
        EXPECT(x[i][LONG - 1] == ranks * (ranks - 1) / 2 + i * ranks, "%d", (int)x[i][LONG - 1]);
        free(x[i]);
    }
    ring_comm_destroy(comms[0]);
    ring_comm_destroy(comms[1]);
    return 0;
}

static void test_communicators_come_in_any_order(void **state)
{
    setenv("RING_ALGO", "ring", 1); /* steps that follow each other */
    run(2, two_communicators);
    run(4, two_communicators);
    unsetenv("RING_ALGO");
}

/* One thread calls for all ranks, as programs for several GPUs do. */
static void test_one_thread_calls_for_several_ranks(void **state)
{
    enum { RANKS = 3, COUNT = 100000 };
    static float x[RANKS][COUNT];
    ring_unique_id id;
    ring_comm *comms[RANKS];
    ring_config config = RING_CONFIG_INIT;
    config.nonblocking = 1;
    assert_int_equal(ring_get_unique_id(&id), RING_OK);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(ring_comm_init_config(&comms[r], RANKS, &id, r, &config), RING_OK);
        x[r][COUNT - 1] = (float)(r + 1);
    }
    assert_int_equal(ring_group_start(), RING_OK);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(ring_all_reduce(x[r], x[r], COUNT, RING_FLOAT32, RING_SUM, comms[r], NULL),
                         RING_OK);
    assert_int_equal(ring_group_end(), RING_OK);
    for (int r = 0; r < RANKS; r++)
        assert_true(x[r][COUNT - 1] == 6);
    for (int r = 0; r < RANKS; r++)
        ring_comm_destroy(comms[r]);
}

/* ---- Errors ------------------------------------------------------------------------------------
 */

static int refused_by_all(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    ring_work *work;
    int32_t x = 1, y = 5;
    ring_call call = RING_CALL_INIT;
    call.work = &work;
    EXPECT_OK(ring_group_start());
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, &call));
    EXPECT(ring_broadcast(&y, &y, 1, RING_INT32, ranks, comm, NULL) == RING_ERR_ARGUMENT, "root");
    EXPECT_OK(ring_send(&x, 1, RING_INT32, 1 - rank, comm, NULL));
    EXPECT_OK(ring_recv(&y, 1, RING_INT32, 1 - rank, comm, NULL));
    EXPECT(ring_group_end() == RING_ERR_ARGUMENT, "%s", ring_last_error(NULL));
    EXPECT(strstr(ring_last_error(NULL), "ring_broadcast: root") != NULL, "%s",
           ring_last_error(NULL));
    EXPECT(x == 1 && work == NULL, "%d: a call was started", (int)x);
    EXPECT_OK(ring_barrier(comm, NULL)); /* all refused alike */
    EXPECT(exchange(rank, ranks, comm, 1000, 0) == 0, "numbers are lost");
    EXPECT_OK(ring_group_start());
    EXPECT(ring_barrier(NULL, NULL) == RING_ERR_ARGUMENT, "no communicator");
    EXPECT(ring_group_end() == RING_ERR_ARGUMENT, "%s", ring_last_error(NULL));
    EXPECT_OK(ring_barrier(comm, NULL));
    return 0;
}

static int refused_by_one(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    int32_t x = 1, y = 5;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const double started = harness_now();
    EXPECT_OK(ring_group_start());
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, NULL));
    const ring_status status = ring_broadcast(&y, &y, 1, RING_INT32, rank == 0 ? -7 : 0, comm,
                                              NULL);
    EXPECT(status == (rank == 0 ? RING_ERR_ARGUMENT : RING_OK), "%d", status);
    meet(board, 0, ranks);
    EXPECT(ring_group_end() == (rank == 0 ? RING_ERR_ARGUMENT : RING_ERR_MISMATCH), "%s",
           ring_last_error(NULL));
    EXPECT(strstr(ring_last_error(NULL), "root is -7") != NULL, "%s", ring_last_error(NULL));
    EXPECT(harness_is_prompt(started), "took %.1f s", harness_now() - started);
    meet(board, 1, ranks);
    ring_comm_destroy(comm);
    return 0;
}

/* One communicator fails, the calls on the other one are done. */
static int one_fails(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *good, *bad;
    float x[8] = {1}, y[8] = {0};
    EXPECT_OK(harness_join(rank, ranks, board, &good));
    EXPECT_OK(ring_comm_dup(good, &bad));
    EXPECT_OK(ring_barrier(bad, NULL));
    EXPECT_OK(ring_group_start());
    EXPECT_OK(ring_all_reduce(y, y, rank == 0 ? 5 : 7, RING_FLOAT32, RING_SUM, bad, NULL));
    EXPECT_OK(ring_all_reduce(x, x, 8, RING_FLOAT32, RING_SUM, good, NULL));
    EXPECT(ring_group_end() == RING_ERR_MISMATCH, "%s", ring_last_error(NULL));
    EXPECT(strstr(ring_last_error(NULL), "count 5") != NULL, "%s", ring_last_error(NULL));
    EXPECT(x[0] == (float)ranks, "%g", (double)x[0]);
    EXPECT_OK(ring_barrier(good, NULL));
    meet(board, 0, ranks);
    ring_comm_destroy(bad);
    ring_comm_destroy(good);
    return 0;
}

static int aborted(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    int32_t x = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_group_start());
    EXPECT_OK(ring_recv(&x, 1, RING_INT32, (rank + 1) % ranks, comm, NULL));
    meet(board, 0, ranks);
    if (rank == 1)
        EXPECT_OK(ring_comm_abort(comm, "the test says so"));
    EXPECT(ring_group_end() == RING_ERR_ABORTED, "%s", ring_last_error(NULL));
    EXPECT(strstr(ring_last_error(NULL), "the test says so") != NULL, "%s", ring_last_error(NULL));
    meet(board, 1, ranks);
    ring_comm_destroy(comm);
    return 0;
}

static void test_errors_of_one_call_and_of_all(void **state)
{
    run_joined(2, refused_by_all);
    run(3, refused_by_one);
    run(2, one_fails);
    run(2, aborted);
}

static int wrong_use_is_told(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    ring_comm *other = NULL;
    ring_work *work = NULL;
    int32_t x = 0;
    int done;
    size_t index;
    EXPECT(ring_group_end() == RING_ERR_USAGE, "an end without a start");
    EXPECT_OK(ring_group_start());
    EXPECT(ring_wait(&work) == RING_ERR_USAGE, "a wait");
    EXPECT(ring_wait_any(&work, 1, &index) == RING_ERR_USAGE, "a wait for any");
    EXPECT(ring_test(&work, &done) == RING_ERR_USAGE && !done, "a test");
    EXPECT(ring_comm_dup(comm, &other) == RING_ERR_USAGE, "a dup");
    EXPECT(strstr(ring_last_error(NULL), "ring_group_end()") != NULL, "%s", ring_last_error(NULL));
    EXPECT_OK(ring_group_end()); /* these are no calls of the group */
    EXPECT(ring_group_end() == RING_ERR_USAGE, "one end too many");
    EXPECT_OK(ring_comm_dup(comm, &other));
    EXPECT_OK(ring_group_start());
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, other, NULL));
    ring_comm_destroy(other);
    EXPECT(ring_group_end() == RING_ERR_USAGE, "a destroyed communicator");
    EXPECT(strstr(ring_last_error(NULL), "destroyed") != NULL, "%s", ring_last_error(NULL));
    EXPECT_OK(ring_barrier(comm, NULL));
    return 0;
}

/* ---- Dropping ----------------------------------------------------------------------------------
 */

/* Rank 0 drops calls of every kind and of all levels, one of them refused, then makes those that
 * the other ranks make. */
static int dropped(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    enum { LONG = 100000 };
    static _Thread_local int32_t x[LONG];
    size_t counts[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    int32_t y[8];
    ring_work *work = (ring_work *)(uintptr_t)1;
    ring_event *event;
    ring_prepared *prepared;
    _Atomic int done = 0;
    ring_call call = RING_CALL_INIT, with_done = RING_CALL_INIT;
    call.prepared = &prepared;
    for (int i = 0; i < LONG; i++)
        x[i] = rank + 1;
    EXPECT(ring_group_drop() == RING_ERR_USAGE, "no group is open");
    EXPECT(harness_says("no group is open in this thread"), "%s", ring_last_error(NULL));
    EXPECT_OK(ring_all_reduce(x, x, LONG, RING_INT32, RING_SUM, comm, &call));
    EXPECT_OK(ring_event_create(&event));
    call = (ring_call)RING_CALL_INIT;
    call.work = &work;
    call.after = event;
    with_done.on_done = count_done;
    with_done.context = &done;
    for (int round = 0; round < 3 && rank == 0; round++) {
        EXPECT_OK(ring_group_start());
        EXPECT_OK(ring_all_reduce(x, x, LONG, RING_INT32, RING_SUM, comm, &call));
        EXPECT_OK(ring_prepared_start(prepared, &with_done));
        EXPECT_OK(ring_group_start());
        EXPECT_OK(ring_send(x, 1, RING_INT32, ranks - 1, comm, NULL));
        EXPECT(ring_broadcast(y, y, 1, RING_INT32, ranks, comm, NULL) == RING_ERR_ARGUMENT, "root");
        EXPECT_OK(ring_all_gather_v(x, y, counts, NULL, RING_INT32, comm, NULL));
        EXPECT_OK(ring_group_drop());
        EXPECT(ring_group_end() == RING_ERR_USAGE, "a level is still open");
        EXPECT(work == NULL && done == 0 && x[0] == 1, "a dropped call was started");
    }
    ring_event_destroy(event);
    EXPECT_OK(ring_comm_flush(comm, 0)); /* there are no calls */
    EXPECT_OK(ring_all_reduce(x, x, LONG, RING_INT32, RING_SUM, comm, NULL));
    EXPECT(x[0] == ranks * (ranks + 1) / 2, "%d", (int)x[0]);
    EXPECT_OK(ring_group_start()); /* a new group has nothing of the dropped ones */
    EXPECT_OK(ring_all_gather_v(x, y, counts, NULL, RING_INT32, comm, NULL));
    EXPECT_OK(ring_group_end());
    EXPECT(y[ranks - 1] == x[0] && done == 0, "%d", (int)y[ranks - 1]);
    EXPECT(exchange(rank, ranks, comm, 1000, 0) == 0, "numbers are lost");
    ring_prepared_destroy(prepared);
    return 0;
}

/* The calls of a communicator that was destroyed meanwhile are dropped, too. */
static int dropped_after_the_end(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    int32_t x = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_group_start());
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, NULL));
    ring_comm_destroy(comm);
    EXPECT_OK(ring_group_drop());
    return 0;
}

/* ---- Threads and processes ----------------------------------------------------------------------
 */

typedef struct a_thread {
    pthread_t thread;
    ring_comm *comm;
    int failed;
    _Atomic int stage;
} a_thread;

static void await_stage(a_thread *t, int stage)
{
    while (atomic_load(&t->stage) < stage)
        usleep(1000);
}

static void *exchange_often(void *context)
{
    a_thread *t = context;
    for (int round = 0; round < 30 && t->failed == 0; round++)
        t->failed = exchange(ring_comm_rank(t->comm), ring_comm_size(t->comm), t->comm,
                             round % 5 == 0 ? 50000 : 100, round);
    return NULL;
}

/* A thread that opens a group and ends without ending it; if asked to, after the communicator. */
static void *leave_open(void *context)
{
    static int32_t x;
    a_thread *t = context;
    t->failed = ring_group_start() != RING_OK ||
                ring_send(&x, 1, RING_INT32, 0, t->comm, NULL) != RING_OK;
    return NULL;
}

static void *stay_open(void *context)
{
    a_thread *t = context;
    leave_open(t);
    atomic_store(&t->stage, 1); /* the other thread destroys the communicator */
    await_stage(t, 2);
    return NULL;
}

static int threads(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    enum { THREADS = 3 };
    a_thread all[THREADS];
    for (int i = 0; i < THREADS; i++) {
        memset(&all[i], 0, sizeof all[i]);
        EXPECT_OK(ring_comm_dup(comm, &all[i].comm));
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&all[i].thread, NULL, exchange_often, &all[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(all[i].thread, NULL);
        EXPECT(all[i].failed == 0, "thread %d", i);
        ring_comm_destroy(all[i].comm);
    }
    a_thread left = {.comm = comm};
    pthread_create(&left.thread, NULL, leave_open, &left);
    pthread_join(left.thread, NULL);
    EXPECT(left.failed == 0, "%s", ring_last_error(NULL));
    EXPECT(exchange(rank, ranks, comm, 100, 0) == 0, "the call of the unended group was sent");
    return 0;
}

static int outlived(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    a_thread left = {.comm = comm};
    pthread_create(&left.thread, NULL, stay_open, &left);
    await_stage(&left, 1);
    ring_comm_destroy(comm);
    atomic_store(&left.stage, 2);
    pthread_join(left.thread, NULL);
    EXPECT(left.failed == 0, "the thread could not call");
    return 0;
}

static int forked(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    int32_t x = 1;
    int status = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_group_start());
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, NULL));
    const pid_t child = fork();
    if (child == 0) {
        const bool alone = ring_group_end() == RING_ERR_USAGE && ring_group_start() == RING_OK &&
                           ring_group_end() == RING_OK;
        _exit(alone ? 0 : 1);
    }
    EXPECT_OK(ring_group_end());
    EXPECT(x == ranks, "sum %d", (int)x);
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended by %d", status);
    ring_comm_destroy(comm);
    return 0;
}

static _Atomic int calls_kept;

/* Calls started by a callback do not wait for the end of the group that its thread has open. */
static void start_one(void *context, ring_status status)
{
    static _Thread_local int32_t x;
    ring_comm *comm = context;
    ring_call call = RING_CALL_INIT;
    ring_work *work;
    call.work = &work;
    if (status == RING_OK &&
        ring_recv(&x, 1, RING_INT32, ring_comm_rank(comm), comm, &call) != RING_OK)
        fprintf(stderr, "%s\n", ring_last_error(NULL));
    if (work == NULL)
        atomic_fetch_add(&calls_kept, 1);
}

static int callback(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_call call = RING_CALL_INIT;
    ring_event *event;
    const int32_t x = 7;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_event_create(&event));
    call.on_done = start_one;
    call.context = comm;
    call.after = event;
    EXPECT_OK(ring_barrier(comm, &call));
    EXPECT_OK(ring_group_start());
    EXPECT_OK(ring_event_set(event, RING_OK)); /* this thread moves the barrier to its end */
    EXPECT_OK(ring_group_start());
    EXPECT_OK(ring_group_end());
    EXPECT_OK(ring_group_end());
    EXPECT(calls_kept == 0, "the callback's call was kept");
    EXPECT_OK(ring_send(&x, 1, RING_INT32, rank, comm, NULL)); /* meets the callback's receive */
    ring_event_destroy(event);
    ring_comm_destroy(comm);
    return 0;
}

static void test_threads_children_and_callbacks_have_no_part_in_it(void **state)
{
    run_joined(2, threads);
    run(2, outlived);
    run(2, forked);
    run(1, callback);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE_ALONE(all_pairs_exchange_long_messages_without_handles, 1, 2, 4),
        CASE(a_group_holds_more_calls_than_a_cache, 2),
        CASE(handles_events_and_callbacks_of_a_group, 1, 3),
        cmocka_unit_test(test_communicators_come_in_any_order),
        cmocka_unit_test(test_one_thread_calls_for_several_ranks),
        cmocka_unit_test(test_errors_of_one_call_and_of_all),
        CASE(wrong_use_is_told, 2),
        CASE(dropped, 1, 2, 3),
        CASE_ALONE(dropped_after_the_end, 1, 2),
        cmocka_unit_test(test_threads_children_and_callbacks_have_no_part_in_it),
    };
    cases_begin(argc, argv);
    setenv("RING_TIMEOUT", "20", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
