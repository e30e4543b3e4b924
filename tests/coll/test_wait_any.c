/* SPDX-License-Identifier: Apache-2.0
 *
 * A caller that waits for one of several calls sleeps in the kernel on the links of all their
 * communicators, and is woken by any of them. Usage: test_coll_wait_any TRANSPORT */
#include <dlfcn.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

enum { RANKS = 2, COMMS = 3, PATIENCE_MS = 20000 };
enum { ASLEEP }; /* counters of the board, one a communicator */

/* ---- How this thread waits ------------------------------------------------------------------- */

static _Thread_local harness_board *watched;
static _Thread_local int turn, sleeps, naps, woken;

/* Stands before libc's. A sleep on all communicators lasts until one of them wakes it. */
__attribute__((visibility("default"))) int poll(struct pollfd *fds, nfds_t count, int ms)
{
    int (*real)(struct pollfd *, nfds_t, int);
    *(void **)&real = dlsym(RTLD_NEXT, "poll");
    if (watched == NULL || count < 2 * (nfds_t)(COMMS - turn) || ms <= 0)
        return real(fds, count, ms);
    sleeps++;
    atomic_store(&watched->counters[ASLEEP + turn], 1);
    const int ready = real(fds, count, PATIENCE_MS);
    woken += ready > 0;
    return ready;
}

__attribute__((visibility("default"))) int nanosleep(const struct timespec *time,
                                                     struct timespec *left)
{
    int (*real)(const struct timespec *, struct timespec *);
    *(void **)&real = dlsym(RTLD_NEXT, "nanosleep");
    naps += watched != NULL;
    return real(time, left);
}

/* ---- One of several calls -------------------------------------------------------------------- */

/* The other rank makes its call on one communicator after another, each when this rank sleeps. */
static int answer_sleepers(ring_comm *const *comms, harness_board *board)
{
    for (int i = 0; i < COMMS; i++) {
        int32_t x = 1;
        const double end = harness_now() + 10;
        while (atomic_load(&board->counters[ASLEEP + i]) == 0 && harness_now() < end)
            usleep(1000);
        EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comms[COMMS - 1 - i], NULL));
    }
    return 0;
}

static int wait_for_each(ring_comm *const *comms, harness_board *board)
{
    int32_t x[COMMS] = {1, 1, 1};
    ring_work *works[COMMS];
    for (int i = 0; i < COMMS; i++) {
        ring_call call = RING_CALL_INIT;
        call.work = &works[i];
        EXPECT_OK(ring_all_reduce(&x[i], &x[i], 1, RING_INT32, RING_SUM, comms[i], &call));
    }
    watched = board;
    for (turn = 0; turn < COMMS; turn++) {
        size_t index;
        sleeps = woken = 0;
        EXPECT_OK(ring_wait_any(works, COMMS, &index));
        EXPECT(index == (size_t)(COMMS - 1 - turn) && x[index] == 2, "%zu: %d", index, x[index]);
        EXPECT(turn == COMMS - 1 || (sleeps > 0 && woken > 0),
               "one of %d calls: slept %d times, woken %d times, %d naps", COMMS - turn, sleeps,
               woken, naps);
        if (turn == COMMS - 2)
            atomic_store(&board->counters[ASLEEP + turn + 1], 1); /* the last one is alone */
    }
    watched = NULL;
    EXPECT(naps == 0, "%d naps", naps);
    return 0;
}

static int sleep_on_all(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comms[COMMS];
    int32_t x = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comms[0]));
    for (int i = 1; i < COMMS; i++)
        EXPECT_OK(ring_comm_dup(comms[0], &comms[i]));
    for (int i = 0; i < COMMS; i++)
        EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comms[i], NULL));
    const int bad = rank == 0 ? wait_for_each(comms, board) : answer_sleepers(comms, board);
    for (int i = COMMS - 1; i >= 0 && bad == 0; i--)
        ring_comm_destroy(comms[i]);
    return bad;
}

static void one_of_several_calls_is_waited_for_asleep(void **state)
{
    run(RANKS, sleep_on_all);
}

/* ---- While a call waits for an event ----------------------------------------------------------
 */

static int wake_by_event(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm, *two;
    ring_event *event;
    ring_work *works[2];
    size_t index;
    int32_t x = 1, y = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_comm_dup(comm, &two));
    ring_call gated = RING_CALL_INIT, free_one = RING_CALL_INIT;
    EXPECT_OK(ring_event_create(&event));
    gated.after = event;
    gated.work = &works[0];
    free_one.work = &works[1];
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, &gated));
    EXPECT_OK(ring_all_reduce(&y, &y, 1, RING_INT32, RING_SUM, two, &free_one));
    EXPECT_OK(ring_wait_any(works, 2, &index));
    EXPECT(index == 1 && works[1] == NULL && y == 2, "%zu: %d", index, y);
    EXPECT_OK(ring_event_set(event, RING_OK));
    EXPECT_OK(ring_wait_any(works, 2, &index));
    EXPECT(index == 0 && works[0] == NULL && x == 2, "%zu: %d", index, x);
    ring_event_destroy(event);
    ring_comm_destroy(two);
    ring_comm_destroy(comm);
    return 0;
}

static void an_event_lets_the_other_call_go(void **state)
{
    run(RANKS, wake_by_event);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    cases_begin(argc, argv);
    setenv("RING_TIMEOUT", "60", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_several_calls_is_waited_for_asleep),
        cmocka_unit_test(an_event_lets_the_other_call_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
