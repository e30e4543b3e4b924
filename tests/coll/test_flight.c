/* SPDX-License-Identifier: Apache-2.0
 * Tests calls that are in flight at the same time: no call starves another, and the end of each is
 * reported once, whatever starts and ends meanwhile.
 * Usage: test_coll_flight TRANSPORT */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

static void run_by(const char *algorithm, int ranks, harness_body body)
{
    setenv("RING_ALGO", algorithm, 1);
    run(ranks, body);
    unsetenv("RING_ALGO");
}

static ring_call bounded_call(void)
{
    ring_call call = RING_CALL_INIT;
    call.timeout = 60; /* s; calls that starve each other never end */
    return call;
}

/* ---- Waiting for chunks ---------------------------------------------------------------------- */

/* Rank 1 makes the second call only when the first one has ended on rank 0. */
static int two_broadcasts(int rank, int ranks, harness_board *board, void *arg)
{
    enum { LARGE = 4 << 20, SMALL = 1 << 16 };
    ring_comm *comm;
    ring_work *works[2];
    ring_call call = bounded_call();
    float *a, *b;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_mem_alloc((void **)&a, LARGE * sizeof *a));
    EXPECT_OK(ring_mem_alloc((void **)&b, SMALL * sizeof *b));
    if (rank == 0) {
        call.work = &works[0];
        EXPECT_OK(ring_broadcast(a, a, LARGE, RING_FLOAT32, 0, comm, &call));
        call.work = &works[1];
        EXPECT_OK(ring_broadcast(b, b, SMALL, RING_FLOAT32, 0, comm, &call));
        EXPECT_OK(ring_wait(&works[0]));
        EXPECT_OK(ring_send(a, 1, RING_FLOAT32, 1, comm, NULL));
        EXPECT_OK(ring_wait(&works[1]));
    } else {
        EXPECT_OK(ring_broadcast(a, a, LARGE, RING_FLOAT32, 0, comm, &call));
        EXPECT_OK(ring_recv(a, 1, RING_FLOAT32, 0, comm, &call));
        EXPECT_OK(ring_broadcast(b, b, SMALL, RING_FLOAT32, 0, comm, &call));
    }
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_mem_free(a);
    ring_mem_free(b);
    ring_comm_destroy(comm);
    return 0;
}

/* The first call has several slices with sums of their own. */
static int sliced_and_short(int rank, int ranks, harness_board *board, void *arg)
{
    enum { LARGE = 16 << 20, SMALL = 1 << 16 };
    ring_comm *comm;
    ring_work *works[2];
    ring_call call = bounded_call();
    float *a, *b;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_mem_alloc((void **)&a, LARGE * sizeof *a));
    EXPECT_OK(ring_mem_alloc((void **)&b, SMALL * sizeof *b));
    a[LARGE - 1] = 1;
    b[0] = (float)rank;
    call.work = &works[0];
    EXPECT_OK(ring_all_reduce(a, a, LARGE, RING_FLOAT32, RING_SUM, comm, &call));
    call.work = &works[1];
    EXPECT_OK(ring_broadcast(b, b, SMALL, RING_FLOAT32, 1, comm, &call));
    EXPECT_OK(ring_wait_all(works, 2));
    EXPECT(a[LARGE - 1] == (float)ranks && b[0] == 1, "%g %g", (double)a[LARGE - 1], (double)b[0]);
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_mem_free(a);
    ring_mem_free(b);
    ring_comm_destroy(comm);
    return 0;
}

/* Rank 0 opens its first call last; later calls could take all memory for partial sums. */
static int sums_behind_a_gate(int rank, int ranks, harness_board *board, void *arg)
{
    enum { CALLS = 12, COUNT = 1 << 20 };
    ring_comm *comm;
    ring_event *event;
    ring_work *works[CALLS];
    float *x[CALLS];
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_event_create(&event));
    for (int i = 0; i < CALLS; i++) {
        ring_call call = bounded_call();
        call.work = &works[i];
        call.after = rank == 0 && i == 0 ? event : NULL;
        EXPECT_OK(ring_mem_alloc((void **)&x[i], COUNT * sizeof(float)));
        x[i][COUNT - 1] = (float)i;
        EXPECT_OK(ring_all_reduce(x[i], x[i], COUNT, RING_FLOAT32, RING_SUM, comm, &call));
    }
    if (rank == 0)
        EXPECT(ring_wait_for(&works[1], 0.2) == RING_IN_PROGRESS, "%s", ring_last_error(comm));
    EXPECT_OK(ring_event_set(event, RING_OK));
    EXPECT_OK(ring_wait_all(works, CALLS));
    for (int i = 0; i < CALLS; i++) {
        EXPECT(x[i][COUNT - 1] == (float)(i * ranks), "%g", (double)x[i][COUNT - 1]);
        ring_mem_free(x[i]);
    }
    ring_event_destroy(event);
    ring_comm_destroy(comm);
    return 0;
}

/* A recv with a closed gate does not delay a recv from another peer. */
static int recv_behind_a_gate(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    enum { COUNT = 1 << 18 };
    ring_event *event;
    ring_work *work;
    float *x;
    EXPECT_OK(ring_event_create(&event));
    EXPECT_OK(ring_mem_alloc((void **)&x, COUNT * sizeof *x));
    if (rank == 0) {
        float *y = calloc(COUNT, sizeof *y); /* not to be reached */
        ring_call gated = bounded_call(), plain = bounded_call();
        gated.work = &work;
        gated.after = event;
        EXPECT_OK(ring_recv(x, COUNT, RING_FLOAT32, 1, comm, &gated));
        EXPECT_OK(ring_recv(y, COUNT, RING_FLOAT32, 2, comm, &plain));
        EXPECT_OK(ring_event_set(event, RING_OK));
        EXPECT_OK(ring_wait(&work));
        EXPECT(x[COUNT - 1] == 1 && y[COUNT - 1] == 2, "%g %g", (double)x[COUNT - 1],
               (double)y[COUNT - 1]);
        free(y);
    } else {
        x[COUNT - 1] = (float)rank;
        EXPECT_OK(ring_send(x, COUNT, RING_FLOAT32, 0, comm, NULL));
    }
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_event_destroy(event);
    ring_mem_free(x);
    return 0;
}

typedef struct lonely {
    _Atomic int ended;
} lonely;

static void lonely_ended(void *context, ring_status status)
{
    ((lonely *)context)->ended += status == RING_OK ? 1 : 100;
}

/* No thread waits, and no other rank's messages wake one. */
static int long_call_alone(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    enum { COUNT = 10 << 20 };
    ring_event *event;
    lonely l = {0};
    ring_call call = RING_CALL_INIT;
    float *x = calloc(COUNT, sizeof *x), *y = malloc(COUNT * sizeof *y);
    EXPECT(x != NULL && y != NULL, "no memory");
    x[COUNT - 1] = 5;
    EXPECT_OK(ring_event_create(&event));
    call.on_done = lonely_ended;
    call.context = &l;
    for (int round = 0; round < 2; round++) {
        y[COUNT - 1] = 0;
        call.after = round == 0 ? NULL : event;
        EXPECT_OK(ring_all_reduce(x, y, COUNT, RING_FLOAT32, RING_SUM, comm, &call));
        if (round == 1)
            EXPECT_OK(ring_event_set(event, RING_OK));
        for (const double end = harness_now() + 10; l.ended <= round && harness_now() < end;)
            usleep(1000);
        EXPECT(l.ended == round + 1 && y[COUNT - 1] == 5, "round %d: %d ended", round, l.ended);
    }
    ring_event_destroy(event);
    free(x);
    free(y);
    return 0;
}

static void test_nobody_need_wait(void **state)
{
    run_joined(3, recv_behind_a_gate);
    run_joined(1, long_call_alone);
}

static void test_calls_that_wait_for_chunks_do_not_starve_each_other(void **state)
{
    run_by("chain", 2, two_broadcasts);
    run_by("halving", 4, sliced_and_short);
    run_by("halving", 4, sums_behind_a_gate);
}

/* ---- on_done ------------------------------------------------------------------- */

typedef struct ends {
    ring_comm *comm;
    ring_event *later;
    int32_t x;
    _Atomic int told[4];
    _Atomic int wrong;
} ends;

static void tell(ends *e, int which, ring_status status)
{
    e->told[which]++;
    e->wrong += status != RING_OK;
}

static void third_ended(void *context, ring_status status)
{
    tell(context, 2, status);
}

static void second_ended(void *context, ring_status status)
{
    tell(context, 1, status);
}

/* Starts one that waits for another event. */
static void first_ended(void *context, ring_status status)
{
    ends *e = context;
    ring_call call = RING_CALL_INIT;
    tell(e, 0, status);
    call.after = e->later;
    call.on_done = third_ended;
    call.context = e;
    e->wrong += ring_barrier(e->comm, &call) != RING_OK;
}

static int the_end_of_each_call_is_told_once(int rank, int ranks, harness_board *board, void *arg)
{
    ends e = {0};
    ring_event *now;
    ring_work *works[2];
    int32_t x[2] = {1, 1};
    EXPECT_OK(harness_join(rank, ranks, board, &e.comm));
    EXPECT_OK(ring_event_create(&now));
    EXPECT_OK(ring_event_create(&e.later));
    for (int i = 0; i < 2; i++) {
        ring_call call = RING_CALL_INIT;
        call.work = &works[i];
        call.after = now;
        call.on_done = i == 0 ? first_ended : second_ended;
        call.context = &e;
        EXPECT_OK(ring_all_reduce(&x[i], &x[i], 1, RING_INT32, RING_SUM, e.comm, &call));
    }
    EXPECT_OK(ring_event_set(now, RING_OK));
    EXPECT_OK(ring_wait(&works[1]));
    EXPECT_OK(ring_wait(&works[0]));
    for (const double end = harness_now() + 5; e.told[1] == 0 && harness_now() < end;)
        usleep(1000);
    EXPECT(e.told[0] == 1 && e.told[1] == 1 && e.told[2] == 0, "%d %d %d", e.told[0], e.told[1],
           e.told[2]);
    EXPECT_OK(ring_event_set(e.later, RING_OK));
    for (const double end = harness_now() + 5; e.told[2] == 0 && harness_now() < end;)
        usleep(1000);
    EXPECT(e.told[2] == 1 && e.wrong == 0, "%d, %d wrong", e.told[2], e.wrong);
    ring_event_destroy(now);
    ring_event_destroy(e.later);
    EXPECT_OK(ring_barrier(e.comm, NULL));
    ring_comm_destroy(e.comm);
    return 0;
}

/* Calls of one rank end at once, so each starts the next from within. */
static void start_next(void *context, ring_status status)
{
    ends *e = context;
    ring_call call = RING_CALL_INIT;
    call.on_done = start_next;
    call.context = e;
    e->wrong += status != RING_OK;
    if (++e->x < 200000)
        e->wrong += ring_barrier(e->comm, &call) != RING_OK;
}

static int callbacks_that_start_calls_do_not_pile_up(int rank, int ranks, harness_board *board,
                                                     void *arg)
{
    ends e = {0};
    EXPECT_OK(harness_join(rank, ranks, board, &e.comm));
    start_next(&e, RING_OK);
    EXPECT(e.x == 200000 && e.wrong == 0, "%d, %d wrong", (int)e.x, e.wrong);
    ring_comm_destroy(e.comm);
    return 0;
}

/* ---- Long histories -------------------------------------------------------------------------- */

/* More calls wait for a closed gate than signatures are remembered. */
static int calls_older_than_what_is_remembered_are_no_mismatch(int rank, int ranks,
                                                               harness_board *board, void *arg)
{
    enum { CALLS = 4200 };
    static double x[HARNESS_MAX_RANKS][CALLS];
    static ring_work *works[HARNESS_MAX_RANKS][CALLS];
    ring_comm *comm;
    ring_event *event;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_event_create(&event));
    for (int i = 0; i < CALLS; i++) {
        ring_call call = RING_CALL_INIT;
        call.work = &works[rank][i];
        call.after = rank == 0 && i == 0 ? event : NULL;
        EXPECT_OK(ring_broadcast(&x[rank][i], &x[rank][i], 1, RING_FLOAT64, 1, comm, &call));
    }
    if (rank == 0)
        EXPECT(ring_wait_for(&works[0][1], 1.5) == RING_IN_PROGRESS, "%s", ring_last_error(comm));
    EXPECT_OK(ring_event_set(event, RING_OK));
    EXPECT_OK(ring_wait_all(works[rank], CALLS));
    ring_event_destroy(event);
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_comm_destroy(comm);
    return 0;
}

/* Refusals that all share come first, more than are kept; then one of rank 0 alone. @param
 * rank1_lags rank 1 begins when rank 0 has refused all its calls. */
static int refuse_after_others(int rank, int ranks, harness_board *board, bool rank1_lags)
{
    enum { ALIKE = 40, REFUSED_ALL = 0, TOLD = 1 };
    ring_comm *comm;
    int32_t x = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank == 1 && rank1_lags)
        EXPECT(harness_await(board, REFUSED_ALL, 1), "rank 0 has not refused its calls");
    for (int i = 0; i < ALIKE + (rank == 0); i++) {
        EXPECT(ring_all_reduce(NULL, &x, 1, RING_INT32, RING_SUM, comm, NULL) == RING_ERR_ARGUMENT,
               "call %d", i);
        usleep(2000);
    }
    const double began = harness_now();
    if (rank == 0) {
        board->counters[REFUSED_ALL] = 1;
        EXPECT(harness_await(board, TOLD, 1), "rank 1 has not ended its call");
    } else {
        EXPECT(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, NULL) == RING_ERR_MISMATCH &&
                   harness_is_prompt(began),
               "%s after %.1f s", ring_last_error(comm), harness_now() - began);
        board->counters[TOLD] = 1;
        EXPECT(strstr(ring_last_error(comm), "src is NULL") != NULL, "%s", ring_last_error(comm));
    }
    ring_comm_destroy(comm);
    return 0;
}

static int a_refusal_is_not_lost_behind_others(int rank, int ranks, harness_board *board, void *arg)
{
    return refuse_after_others(rank, ranks, board, false);
}

static int a_rank_that_lags_is_told_of_a_refusal(int rank, int ranks, harness_board *board,
                                                 void *arg)
{
    return refuse_after_others(rank, ranks, board, true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_that_wait_for_chunks_do_not_starve_each_other),
        cmocka_unit_test(test_nobody_need_wait),
        CASE_ALONE(the_end_of_each_call_is_told_once, 1, 2),
        CASE_ALONE(callbacks_that_start_calls_do_not_pile_up, 1),
        CASE_ALONE(calls_older_than_what_is_remembered_are_no_mismatch, 2),
        CASE_ALONE(a_refusal_is_not_lost_behind_others, 2),
        CASE_ALONE(a_rank_that_lags_is_told_of_a_refusal, 2),
    };
    if (argc != 2)
        return 2;
    cases_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
