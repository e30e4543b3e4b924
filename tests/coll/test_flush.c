/* SPDX-License-Identifier: Apache-2.0
 * Tests ring_comm_flush(): it waits for every kind of call, and for no other.
 * Usage: test_coll_flush TRANSPORT */
#include "far.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

enum { LONG = 200000, PARTS = 4 };

/* ---- Calls that nobody waits for --------------------------------------------------------------
 */

static void fill(int32_t *x, size_t count, int rank)
{
    for (size_t i = 0; i < count; i++)
        x[i] = (int32_t)i + rank;
}

static int expect_sums(const int32_t *x, size_t count, int ranks)
{
    for (size_t i = 0; i < count; i++)
        EXPECT(x[i] == (int32_t)i * ranks + ranks * (ranks - 1) / 2, "element %zu: %d", i,
               (int)x[i]);
    return 0;
}

/* Slow, so that a flush that does not wait for it is seen. */
static void count_later(void *context, ring_status status)
{
    usleep(20000);
    atomic_fetch_add((_Atomic int *)context, status == RING_OK ? 1 : 100);
}

static void count_done(void *context, ring_status status)
{
    atomic_fetch_add((_Atomic int *)context, status == RING_OK ? 1 : 100);
}

static int calls_with_on_done_alone(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    _Atomic int done = 0;
    int32_t *x = malloc(PARTS * LONG * sizeof *x);
    for (int i = 0; i < PARTS; i++) {
        ring_call call = RING_CALL_INIT;
        call.on_done = i % 2 == 0 ? count_later : count_done;
        call.context = &done;
        fill(x + i * LONG, LONG, rank);
        EXPECT_OK(
            ring_all_reduce(x + i * LONG, x + i * LONG, LONG, RING_INT32, RING_SUM, comm, &call));
    }
    EXPECT_OK(ring_comm_flush(comm, INFINITY));
    EXPECT(done == PARTS, "%d of %d on_done functions have returned", done, PARTS);
    for (int i = 0; i < PARTS; i++)
        EXPECT(expect_sums(x + i * LONG, LONG, ranks) == 0, "call %d", i);
    EXPECT_OK(ring_comm_flush(comm, 0)); /* there is nothing left */
    free(x);
    return 0;
}

typedef struct late_end {
    ring_event *event;
    _Atomic int began, may_end, over;
} late_end;

static void end_late(void *context, ring_status status)
{
    late_end *end = context;
    atomic_store(&end->began, 1);
    for (const double since = harness_now(); !end->may_end && harness_is_prompt(since);)
        usleep(1000);
    usleep(20000); /* so that the last flush waits */
    atomic_store(&end->over, status == RING_OK ? 1 : 100);
}

static void *set_event(void *event)
{
    (void)ring_event_set(event, RING_OK);
    return NULL;
}

/* The call has ended when the flush begins, and another thread is in its on_done. */
static int on_done_of_another_thread(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    late_end end = {0};
    pthread_t thread;
    ring_call call = RING_CALL_INIT;
    EXPECT_OK(ring_event_create(&end.event));
    call.after = end.event;
    call.on_done = end_late;
    call.context = &end;
    EXPECT_OK(ring_barrier(comm, &call));
    EXPECT(pthread_create(&thread, NULL, set_event, end.event) == 0, "no thread");
    for (const double since = harness_now(); !end.began && harness_is_prompt(since);)
        usleep(1000);
    EXPECT(end.began && !end.over, "on_done has begun: %d, is over: %d", end.began, end.over);
    EXPECT(ring_comm_flush(comm, 0) == RING_IN_PROGRESS, "on_done has not returned");
    EXPECT(ring_comm_flush(comm, 0.05) == RING_IN_PROGRESS, "on_done has not returned");
    atomic_store(&end.may_end, 1);
    EXPECT_OK(ring_comm_flush(comm, INFINITY));
    EXPECT(end.over == 1, "on_done has not returned: %d", end.over);
    pthread_join(thread, NULL);
    ring_event_destroy(end.event);
    return 0;
}

/* Prepared calls, groups, messages with tags and to this rank itself, and buckets. */
static int calls_of_every_kind(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    static const size_t counts[3] = {1000, 70000, 50000};
    const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    int32_t *x = malloc(LONG * sizeof *x), *y = malloc(LONG * sizeof *y), *z = calloc(LONG, 4);
    int32_t *grads = malloc(121000 * sizeof *grads), own[2] = {rank, -1};
    ring_work *works[6];
    ring_prepared *prepared;
    ring_buckets *buckets;
    ring_call call = RING_CALL_INIT;
    fill(x, LONG, rank);
    fill(y, LONG, rank);
    fill(grads, 121000, rank);
    call.prepared = &prepared;
    EXPECT_OK(ring_all_reduce(x, x, LONG, RING_INT32, RING_SUM, comm, &call));
    EXPECT_OK(ring_buckets_create(&buckets, grads, counts, 3, RING_INT32, RING_SUM, 1 << 17, comm));

    call = (ring_call)RING_CALL_INIT;
    call.work = &works[0];
    EXPECT_OK(ring_prepared_start(prepared, &call));
    EXPECT_OK(ring_group_start());
    call.work = &works[1];
    EXPECT_OK(ring_send(&own[0], 1, RING_INT32, rank, comm, &call));
    call.work = &works[2];
    EXPECT_OK(ring_recv(&own[1], 1, RING_INT32, rank, comm, &call));
    EXPECT_OK(ring_group_end());
    for (size_t i = 3; i-- > 0;)
        EXPECT_OK(ring_buckets_ready(buckets, i));
    call.tagged = 1;
    call.tag = 7;
    call.work = &works[3];
    EXPECT_OK(ring_recv(z, LONG, RING_INT32, last, comm, &call));
    call.work = &works[4];
    EXPECT_OK(ring_send(y, LONG, RING_INT32, next, comm, &call));
    EXPECT_OK(ring_comm_flush(comm, INFINITY));

    EXPECT(expect_sums(x, LONG, ranks) == 0, "the prepared call");
    EXPECT(expect_sums(grads, 121000, ranks) == 0, "the buckets");
    for (int i = 0; i < LONG; i++)
        EXPECT(z[i] == i + last, "the tagged message, element %d", i);
    EXPECT(own[1] == rank, "the message to this rank itself");
    for (int i = 0; i < 5; i++) { /* handles stay valid, and their calls have ended */
        int done = 0;
        EXPECT(works[i] != NULL && ring_test(&works[i], &done) == RING_OK && done, "call %d", i);
    }
    EXPECT_OK(ring_buckets_wait(buckets));
    ring_buckets_destroy(buckets);
    ring_prepared_destroy(prepared);
    free(grads);
    free(x);
    free(y);
    free(z);
    return 0;
}

static int calls_in_streams(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    const size_t bytes = LONG * sizeof(int32_t);
    far_stream *s = far_stream_create();
    int32_t *far = far_alloc_unknown(bytes, NULL), *x = malloc(bytes);
    ring_call call = RING_CALL_INIT;
    call.stream = s;
    fill(x, LONG, rank);
    far_stream_hold(s);
    far_stream_write(s, far, x, bytes);
    EXPECT_OK(ring_all_reduce(far, far, LONG, RING_INT32, RING_SUM, comm, &call));
    EXPECT(ring_comm_flush(comm, 0) == RING_IN_PROGRESS, "a call before its stream");
    EXPECT(ring_comm_flush(comm, 0.05) == RING_IN_PROGRESS, "a call before its stream");
    far_stream_let_go(s);
    EXPECT_OK(ring_comm_flush(comm, INFINITY));
    far_stream_read(s, x, far, bytes);
    far_stream_synchronize(s);
    EXPECT(expect_sums(x, LONG, ranks) == 0, "the call of the stream");
    far_stream_destroy(s);
    far_free_unknown(far);
    free(x);
    return 0;
}

/* ---- Which calls are waited for ----------------------------------------------------------- */

typedef struct flusher {
    ring_comm *comm;
    double seconds;
    ring_status status;
    _Atomic int began, over;
} flusher;

static void *flush(void *arg)
{
    flusher *f = arg;
    atomic_store(&f->began, 1);
    f->status = ring_comm_flush(f->comm, f->seconds);
    atomic_store(&f->over, 1);
    return NULL;
}

/* The calls of other threads count; calls after the flush do not. */
static int calls_before_the_flush_alone(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    flusher f = {.comm = comm, .seconds = HARNESS_PROMPT / 2};
    pthread_t thread;
    ring_event *events[2];
    ring_work *works[2];
    int32_t x[2] = {rank, rank};
    for (int i = 0; i < 2; i++) {
        ring_call call = RING_CALL_INIT;
        EXPECT_OK(ring_event_create(&events[i]));
        call.work = &works[i];
        call.after = events[i];
        call.timeout = HARNESS_PROMPT;
        EXPECT_OK(ring_all_reduce(&x[i], &x[i], 1, RING_INT32, RING_SUM, comm, &call));
        if (i == 0) {
            EXPECT(pthread_create(&thread, NULL, flush, &f) == 0, "no thread");
            for (const double since = harness_now(); !f.began && harness_is_prompt(since);)
                usleep(1000);
            usleep(100000); /* the flush has found its calls by now */
        }
    }
    EXPECT(!f.over, "the flush did not wait for a call of another thread");
    EXPECT_OK(ring_event_set(events[0], RING_OK));
    pthread_join(thread, NULL);
    EXPECT(f.status == RING_OK, "%s", ring_status_string(f.status));
    EXPECT(ring_comm_flush(comm, 0) == RING_IN_PROGRESS, "the later call has ended");
    EXPECT_OK(ring_event_set(events[1], RING_OK));
    EXPECT_OK(ring_comm_flush(comm, INFINITY));
    EXPECT_OK(ring_wait_all(works, 2));
    EXPECT(x[0] == ranks * (ranks - 1) / 2 && x[0] == x[1], "%d and %d", (int)x[0], (int)x[1]);
    ring_event_destroy(events[0]);
    ring_event_destroy(events[1]);
    return 0;
}

/* A call whose event stays unset ends the wait after its timeout, and continues. */
static int events_that_are_not_set(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    ring_event *event;
    ring_work *work;
    int32_t x = rank;
    ring_call call = RING_CALL_INIT;
    EXPECT_OK(ring_event_create(&event));
    call.work = &work;
    call.after = event;
    call.timeout = 0.2;
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, &call));
    const double since = harness_now();
    EXPECT(ring_comm_flush(comm, INFINITY) == RING_IN_PROGRESS, "the call has ended");
    EXPECT(harness_now() - since >= 0.19 && harness_is_prompt(since), "after %.2f s",
           harness_now() - since);
    EXPECT_OK(ring_barrier_probe(comm, HARNESS_PROMPT, NULL, NULL));
    EXPECT_OK(ring_event_set(event, RING_OK));
    EXPECT_OK(ring_comm_flush(comm, INFINITY));
    EXPECT_OK(ring_wait(&work));
    ring_event_destroy(event);
    return 0;
}

/* ---- Errors ------------------------------------------------------------------------------- */

typedef struct note {
    ring_comm *comm;
    ring_status status;
} note;

static void flush_in_on_done(void *context, ring_status status)
{
    note *n = context;
    n->status = status == RING_OK ? ring_comm_flush(n->comm, 0) : status;
}

static int refusals(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    note n = {.comm = comm};
    int state;
    ring_call call = RING_CALL_INIT;
    EXPECT(ring_comm_flush(NULL, 0) == RING_ERR_ARGUMENT, "NULL");
    EXPECT(ring_comm_flush(comm, -1) == RING_ERR_ARGUMENT, "-1 s");
    EXPECT(ring_comm_flush(comm, NAN) == RING_ERR_ARGUMENT, "NaN");
    EXPECT_OK(ring_group_start());
    EXPECT(ring_comm_flush(comm, 0) == RING_ERR_USAGE, "a group is open");
    EXPECT(harness_says("a group is open in this thread"), "%s", ring_last_error(NULL));
    EXPECT_OK(ring_group_end());
    call.on_done = flush_in_on_done;
    call.context = &n;
    EXPECT_OK(ring_barrier(comm, &call));
    EXPECT_OK(ring_comm_flush(comm, INFINITY));
    EXPECT(n.status == RING_ERR_USAGE, "in on_done: %s", ring_status_string(n.status));
    const pid_t child = fork();
    if (child == 0)
        _exit(ring_comm_flush(comm, 0) == RING_ERR_USAGE ? 0 : 1);
    EXPECT(child > 0 && waitpid(child, &state, 0) == child && state == 0, "in a forked child");
    return 0;
}

/* The reason of the end, while the flush waits and after that. */
static int an_abort_ends_the_flush(int rank, int ranks, harness_board *board, void *arg)
{
    flusher f = {.seconds = INFINITY};
    pthread_t thread;
    ring_event *event;
    int32_t x = 0;
    ring_call call = RING_CALL_INIT;
    EXPECT_OK(harness_join(rank, ranks, board, &f.comm));
    EXPECT_OK(ring_event_create(&event));
    ring_work *work;
    call.work = &work;
    call.after = event;
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, f.comm, &call));
    EXPECT(pthread_create(&thread, NULL, flush, &f) == 0, "no thread");
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    if (rank == 0)
        EXPECT_OK(ring_comm_abort(f.comm, "enough"));
    pthread_join(thread, NULL);
    EXPECT(f.status == RING_ERR_ABORTED, "%s", ring_status_string(f.status));
    EXPECT(ring_comm_flush(f.comm, 0) == RING_ERR_ABORTED, "after the end");
    EXPECT(harness_says("enough"), "%s", ring_last_error(NULL));
    EXPECT(ring_wait(&work) == RING_ERR_ABORTED, "the call");
    ring_event_destroy(event);
    ring_comm_destroy(f.comm);
    return 0;
}

/* It is the call that has a deadline. */
static int a_deadline_of_a_call(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_work *work;
    int32_t x;
    ring_call call = RING_CALL_INIT;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    call.work = &work;
    call.timeout = 0.3;
    if (rank == 0) {
        EXPECT_OK(ring_recv(&x, 1, RING_INT32, 1, comm, &call));
        EXPECT(ring_comm_flush(comm, INFINITY) == RING_ERR_TIMEOUT, "%s", ring_last_error(NULL));
        EXPECT(ring_wait(&work) == RING_ERR_TIMEOUT, "the call");
    }
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    ring_comm_destroy(comm);
    return 0;
}

/* With no thread of the library, a caller that only checks advances the calls. */
static int checks_advance_calls(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    ring_work *work;
    ring_status status;
    int32_t *x = malloc(LONG * sizeof *x);
    ring_call call = RING_CALL_INIT;
    call.work = &work;
    fill(x, LONG, rank);
    EXPECT_OK(ring_all_reduce(x, x, LONG, RING_INT32, RING_SUM, comm, &call));
    const double since = harness_now();
    while ((status = ring_comm_flush(comm, 0)) == RING_IN_PROGRESS && harness_is_prompt(since))
        ;
    EXPECT_OK(status);
    EXPECT(expect_sums(x, LONG, ranks) == 0, "the call");
    EXPECT_OK(ring_wait(&work));
    EXPECT_OK(ring_barrier(comm, NULL));
    free(x);
    return 0;
}

static void test_without_a_progress_thread(void **state)
{
    setenv("RING_PROGRESS", "none", 1);
    run_joined(1, checks_advance_calls);
    run_joined(3, checks_advance_calls);
    unsetenv("RING_PROGRESS");
}

/* A start in progress has no calls; then one thread flushes several ranks. */
static void test_several_ranks_of_one_thread(void **state)
{
    enum { RANKS = 3 };
    ring_unique_id id;
    ring_comm *comms[RANKS];
    ring_work *works[RANKS];
    int32_t x[RANKS];
    ring_config config = RING_CONFIG_INIT;
    config.nonblocking = 1;
    assert_int_equal(ring_get_unique_id(&id), RING_OK);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(ring_comm_init_config(&comms[r], RANKS, &id, r, &config), RING_OK);
        assert_int_equal(ring_comm_flush(comms[r], INFINITY), RING_OK);
    }
    for (int r = 0; r < RANKS; r++) {
        ring_call call = RING_CALL_INIT;
        x[r] = r;
        call.work = &works[r];
        assert_int_equal(ring_all_reduce(&x[r], &x[r], 1, RING_INT32, RING_SUM, comms[r], &call),
                         RING_OK);
    }
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(ring_comm_flush(comms[r], INFINITY), RING_OK);
        assert_int_equal(x[r], 3);
    }
    assert_int_equal(ring_wait_all(works, RANKS), RING_OK);
    for (int r = 0; r < RANKS; r++)
        ring_comm_destroy(comms[r]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(calls_with_on_done_alone, 1, 2, 4),
        CASE(on_done_of_another_thread, 1, 2),
        CASE(calls_of_every_kind, 1, 2, 3),
        CASE(calls_in_streams, 2, 3),
        CASE(calls_before_the_flush_alone, 1, 2, 3),
        CASE(events_that_are_not_set, 1, 2),
        CASE(refusals, 1, 2),
        CASE_ALONE(an_abort_ends_the_flush, 2, 3),
        CASE_ALONE(a_deadline_of_a_call, 2),
        cmocka_unit_test(test_without_a_progress_thread),
        cmocka_unit_test(test_several_ranks_of_one_thread),
    };
    cases_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
