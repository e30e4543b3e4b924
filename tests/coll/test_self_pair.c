/* SPDX-License-Identifier: Apache-2.0
 * A rank that sends to itself. Usage: test_coll_self_pair TRANSPORT */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

static ring_call with_handle(ring_work **work)
{
    ring_call call = RING_CALL_INIT;
    call.work = work;
    return call;
}

/* Either side first, short and long, several under way; other pairs go on beside it. */
static int a_rank_sends_to_itself_in_call_order(ring_comm *comm, int rank, int ranks,
                                                harness_board *board)
{
    enum { LONG = 300000, DEPTH = 3 };
    static const size_t counts[] = {0, 1, 5, LONG - DEPTH};
    int32_t *out = malloc(LONG * sizeof *out), *in = calloc((size_t)DEPTH * LONG, sizeof *in);
    for (size_t i = 0; i < LONG; i++)
        out[i] = rank * LONG + (int32_t)i + 1;
    for (size_t k = 0; k < 2 * sizeof counts / sizeof *counts; k++) {
        const size_t count = counts[k / 2];
        ring_work *works[DEPTH];
        memset(in, 0, (size_t)DEPTH * LONG * sizeof *in);
        for (int i = 0; i < DEPTH; i++) {
            const ring_call call = with_handle(&works[i]);
            if (k % 2 == 0)
                EXPECT_OK(ring_send(out + i, count, RING_INT32, rank, comm, &call));
            else
                EXPECT_OK(ring_recv(in + i * LONG, count, RING_INT32, rank, comm, &call));
        }
        EXPECT_OK(ring_barrier(comm, NULL));
        for (int i = 0; i < DEPTH; i++) {
            if (k % 2 == 0)
                EXPECT_OK(ring_recv(in + i * LONG, count, RING_INT32, rank, comm, NULL));
            else
                EXPECT_OK(ring_send(out + i, count, RING_INT32, rank, comm, NULL));
        }
        EXPECT_OK(ring_wait_all(works, DEPTH));
        for (int i = 0; i < DEPTH; i++) {
            EXPECT(memcmp(in + i * LONG, out + i, count * sizeof *in) == 0, "message %d of %zu", i,
                   count);
            EXPECT(in[i * LONG + (int)count] == 0, "message %d is longer than %zu", i, count);
        }
    }
    free(in);
    free(out);
    return 0;
}

typedef struct late_receive {
    ring_comm *comm;
    int rank;
    double value;
    ring_status status;
} late_receive;

static void *receive_late(void *context)
{
    late_receive *r = context;
    usleep(100000); /* the sender sleeps by then */
    r->status = ring_recv(&r->value, 1, RING_FLOAT64, r->rank, r->comm, NULL);
    return NULL;
}

static int the_receive_may_come_from_another_thread(int rank, int ranks, harness_board *board,
                                                    void *arg)
{
    ring_comm *comm;
    pthread_t thread;
    const double x = 42;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    late_receive late = {.comm = comm, .rank = rank};
    pthread_create(&thread, NULL, receive_late, &late);
    EXPECT_OK(ring_send(&x, 1, RING_FLOAT64, rank, comm, NULL));
    pthread_join(thread, NULL);
    EXPECT(late.status == RING_OK && late.value == 42, "%d, %g", late.status, late.value);
    ring_comm_destroy(comm);
    return 0;
}

/* Both ends of the pair may wait for an event; on_done reports each end. */
static void count_done(void *context, ring_status status)
{
    atomic_fetch_add((_Atomic int *)context, status == RING_OK ? 1 : 100);
}

static int events_and_callbacks_are_those_of_other_calls(ring_comm *comm, int rank, int ranks,
                                                         harness_board *board)
{
    ring_event *event;
    ring_work *second;
    _Atomic int done = 0;
    float x = 1, y = 0, later = 9;
    EXPECT_OK(ring_event_create(&event));
    ring_call call = RING_CALL_INIT;
    call.after = event;
    call.on_done = count_done;
    call.context = &done;
    EXPECT_OK(ring_send(&x, 1, RING_FLOAT32, rank, comm, &call));
    const ring_call behind = with_handle(&second);
    EXPECT_OK(ring_send(&later, 1, RING_FLOAT32, rank, comm, &behind)); /* not the first recv's */
    call.after = NULL;
    EXPECT_OK(ring_recv(&y, 1, RING_FLOAT32, rank, comm, &call));
    EXPECT(done == 0 && y == 0, "%d done before the event", done);
    x = 7;
    EXPECT_OK(ring_event_set(event, RING_OK));
    for (const double end = harness_now() + 10; done < 2 && harness_now() < end;)
        usleep(1000);
    EXPECT(done == 2 && y == 7, "%d done, %g", done, (double)y);
    EXPECT_OK(ring_recv(&y, 1, RING_FLOAT32, rank, comm, NULL));
    EXPECT_OK(ring_wait(&second));
    EXPECT(y == 9, "%g", (double)y);
    ring_event_destroy(event);
    return 0;
}

/* ---- Errors ------------------------------------------------------------------------------- */

/* Outside of the communicator: the first failure ends calls of all ranks. */
static void meet(harness_board *board, int ranks)
{
    atomic_fetch_add(&board->counters[0], 1);
    while (atomic_load(&board->counters[0]) < ranks)
        usleep(1000);
}

static int never_received(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    float x = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    ring_call call = RING_CALL_INIT;
    call.timeout = 0.2;
    const double started = harness_now();
    EXPECT(ring_send(&x, 1, RING_FLOAT32, rank, comm, &call) == RING_ERR_TIMEOUT, "%s",
           ring_last_error(comm));
    EXPECT(harness_is_prompt(started), "took %.1f s", harness_now() - started);
    EXPECT(strstr(ring_last_error(comm), "ring_recv to itself") != NULL, "%s",
           ring_last_error(comm));
    EXPECT(ring_recv(&x, 1, RING_FLOAT32, rank, comm, NULL) == RING_ERR_TIMEOUT, "%s",
           ring_last_error(comm));
    ring_comm_destroy(comm);
    return 0;
}

static int other_count(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_work *sending;
    float x[8] = {0}, y[8] = {0};
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const ring_call call = with_handle(&sending);
    EXPECT_OK(ring_send(x, 5, RING_FLOAT32, rank, comm, &call));
    meet(board, ranks);
    EXPECT(ring_recv(y, 7, RING_FLOAT32, rank, comm, NULL) == RING_ERR_MISMATCH, "%s",
           ring_last_error(comm));
    const char *text = ring_last_error(comm);
    EXPECT(strstr(text, "count 5") != NULL && strstr(text, "count 7") != NULL, "%s", text);
    EXPECT(ring_wait(&sending) == RING_ERR_MISMATCH, "%s", ring_last_error(NULL));
    ring_comm_destroy(comm);
    return 0;
}

/* A refused call takes no place, and one that nobody met ends with its communicator. */
static int refused_and_left(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_work *sending, *left;
    float x = 3, y = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(ring_recv(NULL, 1, RING_FLOAT32, rank, comm, NULL) == RING_ERR_ARGUMENT, "NULL dst");
    ring_call call = with_handle(&sending);
    EXPECT_OK(ring_send(&x, 1, RING_FLOAT32, rank, comm, &call));
    EXPECT_OK(ring_recv(&y, 1, RING_FLOAT32, rank, comm, NULL));
    EXPECT_OK(ring_wait(&sending));
    EXPECT(y == 3, "%g", (double)y);
    call.work = &left;
    EXPECT_OK(ring_recv(&y, 1, RING_FLOAT32, rank, comm, &call));
    meet(board, ranks);
    ring_comm_abort(comm, "the test says so");
    EXPECT(ring_wait(&left) == RING_ERR_ABORTED, "%s", ring_last_error(NULL));
    ring_comm_destroy(comm);
    return 0;
}

static void test_what_does_not_match_is_an_error_in_time(void **state)
{
    run(1, never_received);
    run(2, never_received);
    run(1, other_count);
    run(2, other_count);
    run(1, refused_and_left);
    run(3, refused_and_left);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(a_rank_sends_to_itself_in_call_order, 1, 3),
        CASE_ALONE(the_receive_may_come_from_another_thread, 1, 2),
        CASE(events_and_callbacks_are_those_of_other_calls, 1, 2),
        cmocka_unit_test(test_what_does_not_match_is_an_error_in_time),
    };
    cases_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
