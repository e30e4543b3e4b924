/* SPDX-License-Identifier: Apache-2.0
 *
 * Several threads wait for one call: each gets its result. Usage: test_coll_waiters TRANSPORT */
#include "harness.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

enum { RANKS = 2, WAITERS = 4, ROUNDS = 300 };
enum { ASLEEP, GONE }; /* counters of the board */

static const char *transport_name;

static void run(harness_body body)
{
    assert_int_equal(harness_run(harness_kind_of(transport_name), RANKS, body, NULL, NULL), 0);
}

/* ---- When a thread is in its call ------------------------------------------------------------ */

static _Thread_local harness_board *watched;

/* Stands before libc's: a thread that sleeps has entered its call. */
__attribute__((visibility("default"))) int poll(struct pollfd *fds, nfds_t count, int ms)
{
    int (*real)(struct pollfd *, nfds_t, int);
    *(void **)&real = dlsym(RTLD_NEXT, "poll");
    if (watched != NULL)
        atomic_fetch_add(&watched->counters[ASLEEP], 1);
    watched = NULL;
    return real(fds, count, ms);
}

/* ---- Waiters --------------------------------------------------------------------------------- */

typedef enum way { WAIT, WAIT_FOR, WAIT_ANY, WAIT_ALL, KEEP, TEST, WAYS } way;

typedef struct waiter {
    pthread_t thread;
    harness_board *board; /* NULL: nobody asks when it sleeps */
    ring_work *work;      /* a copy of its own */
    ring_work *other;     /* of a call that does not end */
    way how;
    ring_status status;
    char text[200];
} waiter;

static ring_status test_until_done(ring_work **work)
{
    int done = 0;
    ring_status status = RING_OK;
    while (!done && status == RING_OK)
        status = ring_test(work, &done);
    return status;
}

static ring_status wait_in_a_way(waiter *w)
{
    ring_work *both[2] = {w->other, w->work};
    size_t index;
    switch (w->how) {
    case WAIT_FOR:
        return ring_wait_for(&w->work, 1000);
    case WAIT_ANY:
        return ring_wait_any(both, 2, &index);
    case WAIT_ALL:
        return ring_wait_all(&both[1], 1);
    case KEEP:
        return ring_wait_keep(w->work, 1000);
    case TEST:
        return test_until_done(&w->work);
    default:
        return ring_wait(&w->work);
    }
}

static void *wait_once(void *arg)
{
    waiter *w = arg;
    watched = w->board;
    w->status = wait_in_a_way(w);
    snprintf(w->text, sizeof w->text, "%s", ring_last_error(NULL));
    watched = NULL;
    return NULL;
}

static int start_waiters(waiter *waiters, const way *ways, ring_work *work, ring_work *other,
                         harness_board *board)
{
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (waiter){.board = board, .work = work, .other = other, .how = ways[i]};
        EXPECT(pthread_create(&waiters[i].thread, NULL, wait_once, &waiters[i]) == 0, "no thread");
    }
    return 0;
}

static void join_waiters(waiter *waiters)
{
    for (int i = 0; i < WAITERS; i++)
        pthread_join(waiters[i].thread, NULL);
}

static ring_status start_recv(int32_t *x, ring_comm *comm, ring_work **work)
{
    ring_call call = RING_CALL_INIT;
    call.work = work;
    return ring_recv(x, 1, RING_INT32, 1, comm, &call);
}

/* ---- Those that came before the end ---------------------------------------------------------- */

static int wait_together(ring_comm *comm, harness_board *board, const way *ways)
{
    waiter waiters[WAITERS];
    ring_work *work, *other;
    int32_t x = 0, y = 0;
    EXPECT_OK(start_recv(&x, comm, &work));
    EXPECT_OK(start_recv(&y, comm, &other));
    const int bad = start_waiters(waiters, ways, work, other, board);
    EXPECT(bad == 0 && harness_await(board, ASLEEP, WAITERS), "%d threads wait",
           atomic_load(&board->counters[ASLEEP]));
    atomic_store(&board->counters[GONE], 1);
    join_waiters(waiters);
    for (int i = 0; i < WAITERS; i++)
        EXPECT(waiters[i].status == RING_OK, "waiter %d: %s: %s", i,
               ring_status_string(waiters[i].status), waiters[i].text);
    EXPECT(x == 7, "%d", x);
    atomic_store(&board->counters[GONE], 2);
    EXPECT(ring_wait(&work) == RING_ERR_USAGE, "a handle that has ended was waited for");
    EXPECT_OK(ring_wait(&other));
    EXPECT(y == 8, "%d", y);
    return 0;
}

/* The first message goes when all wait. */
static int send_both(ring_comm *comm, harness_board *board)
{
    for (int32_t i = 0; i < 2; i++) {
        const int32_t x = 7 + i;
        EXPECT(harness_await(board, GONE, 1 + i), "nobody waits");
        EXPECT_OK(ring_send(&x, 1, RING_INT32, 0, comm, NULL));
    }
    return 0;
}

static int together(int rank, int ranks, harness_board *board, void *arg)
{
    static const way ways[WAITERS] = {WAIT, WAIT_FOR, WAIT_ANY, WAIT_ALL};
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const int bad = rank == 0 ? wait_together(comm, board, ways) : send_both(comm, board);
    if (bad == 0)
        ring_comm_destroy(comm);
    return bad;
}

static void test_all_who_wait_get_the_result(void **state)
{
    run(together);
}

/* ---- A failure ------------------------------------------------------------------------------- */

static int fail_together(ring_comm *comm, harness_board *board)
{
    static const way ways[WAITERS] = {WAIT, WAIT, KEEP, WAIT_FOR};
    waiter waiters[WAITERS];
    ring_work *work;
    int32_t x = 0;
    EXPECT_OK(start_recv(&x, comm, &work));
    const int bad = start_waiters(waiters, ways, work, NULL, board);
    EXPECT(bad == 0 && harness_await(board, ASLEEP, WAITERS), "%d threads wait",
           atomic_load(&board->counters[ASLEEP]));
    EXPECT_OK(ring_comm_abort(comm, "enough"));
    join_waiters(waiters);
    for (int i = 0; i < WAITERS; i++)
        EXPECT(waiters[i].status == RING_ERR_ABORTED && strstr(waiters[i].text, "enough") != NULL,
               "waiter %d: %s: %s", i, ring_status_string(waiters[i].status), waiters[i].text);
    return 0;
}

static int failing(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    int bad = 0;
    if (rank == 0)
        bad = fail_together(comm, board);
    else
        EXPECT(ring_barrier(comm, NULL) == RING_ERR_ABORTED, "%s", ring_last_error(comm));
    if (bad == 0)
        ring_comm_destroy(comm);
    return bad;
}

static void test_all_who_wait_hear_of_a_failure(void **state)
{
    run(failing);
}

/* ---- At any time ----------------------------------------------------------------------------- */

/* A thread that comes when another one has ended the handle is refused; with ring_wait_keep() it
 * never is. Each round has the same number of threads that end the handle. */
static int race(ring_comm *comm)
{
    for (int round = 0; round < ROUNDS; round++) {
        waiter waiters[WAITERS];
        ring_work *work;
        way ways[WAITERS];
        int32_t x = round;
        int got = 0;
        const bool keeps = round % 3 == 0;
        for (int i = 0; i < WAITERS; i++)
            ways[i] = keeps ? KEEP : (way)((round + i) % WAYS);
        ring_call call = RING_CALL_INIT;
        call.work = &work;
        EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, &call));
        EXPECT(start_waiters(waiters, ways, work, NULL, NULL) == 0, "no threads");
        join_waiters(waiters);
        for (int i = 0; i < WAITERS; i++) {
            got += waiters[i].status == RING_OK;
            EXPECT(waiters[i].status == RING_OK || (!keeps && waiters[i].status == RING_ERR_USAGE &&
                                                    strstr(waiters[i].text, "has ended") != NULL),
                   "round %d, waiter %d: %s: %s", round, i, ring_status_string(waiters[i].status),
                   waiters[i].text);
        }
        EXPECT(got > 0 && x == RANKS * round, "round %d: %d got it, %d", round, got, x);
        if (keeps) {
            EXPECT_OK(ring_wait_keep(work, 0));
            EXPECT_OK(ring_wait(&work));
        }
    }
    return 0;
}

static int racing(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const int bad = race(comm);
    if (bad == 0)
        ring_comm_destroy(comm);
    return bad;
}

static void test_threads_may_come_at_any_time(void **state)
{
    run(racing);
}

/* ---- Keeping --------------------------------------------------------------------------------- */

static int kept(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_work *work = NULL, *late = NULL;
    int32_t x = 1, y = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    ring_call call = RING_CALL_INIT;
    call.work = &work;
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, &call));
    for (int i = 0; i < 3; i++)
        EXPECT_OK(ring_wait_keep(work, 1000));
    EXPECT(x == RANKS, "%d", x);
    ring_work *copy = work;
    EXPECT_OK(ring_wait(&work));
    EXPECT(ring_wait_keep(copy, 0) == RING_ERR_USAGE, "a handle that has ended was waited for");
    EXPECT_OK(ring_wait_keep(NULL, 0));
    EXPECT(ring_wait_keep(NULL, -1) == RING_ERR_ARGUMENT, "a negative time");
    call.work = &late;
    EXPECT_OK(ring_recv(&y, 1, RING_INT32, 1 - rank, comm, &call));
    EXPECT(ring_wait_keep(late, 0.01) == RING_IN_PROGRESS, "nobody has sent");
    atomic_fetch_add(&board->counters[GONE], 1);
    EXPECT(harness_await(board, GONE, RANKS), "the other rank is not here");
    ring_comm_destroy(comm);
    for (int i = 0; i < 2; i++)
        EXPECT(ring_wait_keep(late, 1000) == RING_ERR_ABORTED, "its communicator is gone");
    EXPECT(ring_wait(&late) == RING_ERR_ABORTED && late == NULL, "its communicator is gone");
    return 0;
}

static void test_a_kept_handle_tells_its_result_again(void **state)
{
    run(kept);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_who_wait_get_the_result),
        cmocka_unit_test(test_all_who_wait_hear_of_a_failure),
        cmocka_unit_test(test_threads_may_come_at_any_time),
        cmocka_unit_test(test_a_kept_handle_tells_its_result_again),
    };
    if (argc != 2)
        return 2;
    transport_name = argv[1];
    setenv("RING_TRANSPORT", argv[1], 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
