/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank waits for the reason why a link broke. Meanwhile its control thread receives the reason,
 * although no thread of the program waits, and its other threads can use the communicator. Usage:
 * test_fault_reason TRANSPORT */
#include "harness.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "unit_test.h"

enum { RELAY, LEAVER, WAITER, RANKS, COUNT = 1000, ROUNDS = 5 };
/* Counters of the board. */
enum { HELD, GONE, NOTICED, RELEASED };

/* ---- The threads of this process ------------------------------------------------------------ */

static harness_board *watched; /* NULL: nothing is counted */
static _Thread_local bool serves, asks, calls;
static _Atomic int sleeps;            /* of the control thread */
static _Atomic int rounds;            /* sleeps of the progress thread once the leaver is gone */
static harness_board *_Atomic holder; /* not NULL: the control thread tells nothing on meanwhile */
static _Atomic int answers, shut_out;

/* The other thread is answered while this one waits, or the lock is held over the wait. */
static void let_another_ask(void)
{
    const int before = atomic_load(&answers);
    const double end = harness_now() + 10;
    if (!asks || watched == NULL || atomic_load(&watched->counters[GONE]) == 0)
        return;
    while (atomic_load(&answers) < before + 2 && harness_now() < end)
        sched_yield();
    if (atomic_load(&answers) < before + 2) {
        atomic_store(&shut_out, 1);
        asks = false;
    }
}

static bool is_gone(void)
{
    return watched != NULL && atomic_load(&watched->counters[GONE]) > 0;
}

static void note_wait(void)
{
    if (serves && watched != NULL)
        atomic_fetch_add(&sleeps, 1);
    if (!serves && !calls && is_gone())
        atomic_fetch_add(&rounds, 1);
    let_another_ask();
}

/* ---- In place of libc's ---------------------------------------------------------------------- */

#define IN_PLACE_OF_LIBC __attribute__((visibility("default")))

#define WATCHED(type, name, params, args, note) \
    type stand_in_##name params __asm__(#name); \
    IN_PLACE_OF_LIBC type stand_in_##name params \
    { \
        type(*call) params; \
        const void *found = dlsym(RTLD_NEXT, #name); \
        memcpy(&call, &found, sizeof call); \
        note; \
        return call args; \
    }

WATCHED(int, nanosleep, (const struct timespec *how_long, struct timespec *left), (how_long, left),
        note_wait())
WATCHED(int, poll, (struct pollfd * fds, nfds_t count, int ms), (fds, count, ms),
        ms != 0 ? note_wait() : (void)0) /* 0: a look */
WATCHED(int, pthread_cond_timedwait, (void *cond, void *lock, const struct timespec *until),
        (cond, lock, until), note_wait())

static void await_counter(const harness_board *board, int which)
{
    while (atomic_load(&board->counters[which]) == 0)
        usleep(200);
}

/* The control thread alone sleeps here. */
IN_PLACE_OF_LIBC int epoll_wait(int set, struct epoll_event *events, int most, int ms)
{
    const int count = epoll_pwait(set, events, most, ms, NULL);
    const harness_board *board = atomic_load(&holder);
    serves = true;
    if (board != NULL)
        await_counter(board, NOTICED);
    return count;
}

/* ---- Three ranks, two of them in a communicator ---------------------------------------------- */

typedef struct part {
    ring_comm *world, *two; /* two: NULL on the relay */
    harness_board *board;
} part;

static int begin(part *p, int rank, int ranks, harness_board *board)
{
    int x = 0;
    calls = true;
    *p = (part){.board = board};
    EXPECT_OK(harness_join(rank, ranks, board, &p->world));
    EXPECT_OK(ring_comm_split(p->world, rank == RELAY ? 1 : 0, 0, &p->two));
    if (rank != RELAY) /* their link is open */
        EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, p->two, NULL));
    return 0;
}

static int end(part *p)
{
    watched = NULL;
    ring_comm_destroy(p->two);
    EXPECT_OK(ring_barrier(p->world, NULL));
    ring_comm_destroy(p->world);
    return 0;
}

/* ---- The reason comes while it is asked for ---------------------------------------------------
 */

static int relay_late(part *p)
{
    int32_t x;
    EXPECT_OK(ring_recv(&x, 1, RING_INT32, WAITER, p->world, NULL));
    atomic_store(&holder, p->board);
    atomic_store(&p->board->counters[HELD], 1);
    await_counter(p->board, RELEASED);
    atomic_store(&holder, NULL);
    return 0;
}

/* The refusal reaches the waiter by way of the relay, the end of this rank directly. */
static int refuse_and_leave(part *p)
{
    int32_t x = 0;
    await_counter(p->board, HELD);
    EXPECT(ring_all_reduce(&x, &x, 1, (ring_dtype)99, RING_SUM, p->two, NULL) == RING_ERR_ARGUMENT,
           "%s", ring_last_error(NULL));
    ring_comm_destroy(p->two);
    p->two = NULL;
    atomic_store(&p->board->counters[GONE], 1);
    await_counter(p->board, RELEASED);
    return 0;
}

static int compute_meanwhile(part *p)
{
    static float x[COUNT];
    int32_t note = 1;
    ring_work *work;
    ring_call call = RING_CALL_INIT;
    call.work = &work;
    watched = p->board;
    EXPECT_OK(ring_all_reduce(x, x, COUNT, RING_FLOAT32, RING_SUM, p->two, &call));
    EXPECT_OK(ring_send(&note, 1, RING_INT32, RELAY, p->world, NULL));
    while (atomic_load(&rounds) < ROUNDS && ring_comm_status(p->two) == RING_OK)
        usleep(200);
    atomic_store(&p->board->counters[NOTICED], 1);
    const ring_status status = ring_wait(&work);
    atomic_store(&p->board->counters[RELEASED], 1);
    EXPECT(status == RING_ERR_MISMATCH, "%s: %s", ring_status_string(status),
           ring_last_error(p->two));
    EXPECT(strstr(ring_last_error(p->two), "rank 0") != NULL, "%s", ring_last_error(p->two));
    EXPECT(atomic_load(&sleeps) == 0, "the control thread slept %d times", atomic_load(&sleeps));
    return 0;
}

static int hear_the_reason(int rank, int ranks, harness_board *board, void *arg)
{
    static int (*const parts[RANKS])(part *) = {relay_late, refuse_and_leave, compute_meanwhile};
    part p;
    if (begin(&p, rank, ranks, board) != 0)
        return 1;
    const int bad = parts[rank](&p);
    return bad || end(&p);
}

static void the_control_thread_hears_the_reason_it_asks_for(void **state)
{
    assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, hear_the_reason, NULL, NULL), 0);
}

/* ---- The lock is free meanwhile ---------------------------------------------------------------
 */

static void *ask(void *arg)
{
    const part *p = arg;
    while (atomic_load(&p->board->counters[RELEASED]) == 0) {
        ring_comm_info info = {.size = sizeof info};
        (void)ring_comm_get_info(p->two, &info);
        atomic_fetch_add(&answers, 1);
    }
    return NULL;
}

static int fail_beside_another(part *p)
{
    static float x[COUNT];
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, ask, p) == 0, "no thread");
    asks = true;
    watched = p->board;
    const ring_status status = ring_all_reduce(x, x, COUNT, RING_FLOAT32, RING_SUM, p->two, NULL);
    asks = false;
    atomic_store(&p->board->counters[RELEASED], 1);
    pthread_join(thread, NULL);
    EXPECT(status == RING_ERR_PEER, "%s: %s", ring_status_string(status), ring_last_error(p->two));
    EXPECT(atomic_load(&shut_out) == 0, "the lock was held over a wait");
    return 0;
}

static int leave(part *p)
{
    ring_comm_destroy(p->two);
    p->two = NULL;
    atomic_store(&p->board->counters[GONE], 1);
    return 0;
}

static int share_the_lock(int rank, int ranks, harness_board *board, void *arg)
{
    part p;
    if (begin(&p, rank, ranks, board) != 0)
        return 1;
    const int bad = rank == LEAVER ? leave(&p) : rank == WAITER ? fail_beside_another(&p) : 0;
    return bad || end(&p);
}

static void other_threads_get_in_while_a_call_fails(void **state)
{
    assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, share_the_lock, NULL, NULL), 0);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    setenv("RING_TRANSPORT", argv[1], 1);
    setenv("RING_TIMEOUT", "60", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_control_thread_hears_the_reason_it_asks_for),
        cmocka_unit_test(other_threads_get_in_while_a_call_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
