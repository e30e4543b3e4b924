/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks make communicators by themselves and meet in barriers while one of them is killed or
 * stopped: the others get an error, and none of them waits for ever. Usage: test_fault_create
 * TRANSPORT */
#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

enum { RANKS = 4 };
enum { READY, DONE }; /* counters of the board */

typedef struct scene {
    int victim, signal;
    unsigned delay_us;
    ring_status (*act)(ring_comm *comm);
} scene;

static void *strike_later(void *arg)
{
    const scene *s = arg;
    usleep(s->delay_us);
    kill(getpid(), s->signal);
    return NULL;
}

/* ---- Progress of the ranks ---------------------------------------------------------------------
 */

/* Rank 2 is in no list. */
static ring_status create(ring_comm *comm)
{
    static const int list[] = {3, 0, 1};
    ring_comm *three;
    int32_t x = 1;
    if (ring_comm_rank(comm) == 2)
        return ring_barrier_probe(comm, 0.001, NULL, NULL);
    ring_status status = ring_comm_create(comm, list, 3, 4, &three);
    if (status != RING_OK)
        return status;
    status = ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, three, NULL);
    ring_comm_destroy(three);
    return status == RING_OK && x != 3 ? RING_ERR_INTERNAL : status;
}

static ring_status exclude(ring_comm *comm)
{
    static const int list[] = {2};
    ring_comm *three;
    if (ring_comm_rank(comm) == 2)
        return ring_barrier_probe(comm, 0.001, NULL, NULL);
    const ring_status status = ring_comm_exclude(comm, list, 1, &three);
    if (status == RING_OK)
        ring_comm_destroy(three);
    return status;
}

static ring_status probe(ring_comm *comm)
{
    return ring_barrier_probe(comm, 1000, NULL, NULL);
}

/* ---- Until somebody is gone ---------------------------------------------------------------------
 */

static int go_on_until_failure(ring_comm *comm, const scene *s)
{
    const double end = harness_now() + 10 * HARNESS_PROMPT;
    ring_status status = RING_OK;
    while ((status == RING_OK || status == RING_IN_PROGRESS) && harness_now() < end)
        status = s->act(comm);
    EXPECT(status == RING_ERR_PEER, "%s: %s", ring_status_string(status), ring_last_error(NULL));
    EXPECT(strstr(ring_last_error(NULL), "lost") != NULL, "%s", ring_last_error(NULL));
    return 0;
}

static int take_part(int rank, int ranks, harness_board *board, void *arg)
{
    scene *s = arg;
    pthread_t thread;
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    for (atomic_fetch_add(&board->counters[READY], 1); board->counters[READY] < ranks;)
        usleep(100);
    if (rank == s->victim)
        EXPECT(pthread_create(&thread, NULL, strike_later, s) == 0, "no thread");
    const int bad = go_on_until_failure(comm, s);
    atomic_fetch_add(&board->counters[DONE], 1);
    ring_comm_destroy(comm);
    return bad;
}

static void kill_in_the_end(harness_board *board, void *arg)
{
    const scene *s = arg;
    const double end = harness_now() + 20 * HARNESS_PROMPT;
    while (atomic_load(&board->counters[DONE]) < RANKS - 1 && harness_now() < end)
        usleep(1000);
    kill(board->pids[s->victim], SIGKILL);
}

static void strike(ring_status (*act)(ring_comm *comm))
{
    const int kills = (int)harness_number("RING_TEST_KILLS", 8);
    unsigned dice = 54321;
    for (int i = 0; i < kills; i++) {
        dice = dice * 1103515245u + 12345u;
        scene s = {.victim = i % RANKS,
                   .signal = i % 8 < 6 ? SIGKILL : SIGSTOP,
                   .delay_us = dice >> 16 & 0x1fff,
                   .act = act};
        assert_int_equal(harness_run_beside(RANKS, take_part, &s, kill_in_the_end), 1);
    }
}

static void test_a_list_ends_with_a_lost_rank(void **state)
{
    strike(create);
}

static void test_those_that_stay_hear_of_a_lost_rank(void **state)
{
    strike(exclude);
}

static void test_a_probing_barrier_ends_with_a_lost_rank(void **state)
{
    strike(probe);
}

/* ---- Leaving out beside an abort ---------------------------------------------------------------
 */

enum { MADE = 2, RESUMED, SUMMED };

/* Until the communicator has failed, or, so that it may not have, for some calls. The rank that is
 * struck makes calls without end. */
static void make_calls(ring_comm *comm, bool endless)
{
    static float x[60000];
    ring_status status = RING_OK;
    for (int i = 0; status == RING_OK && (endless || i < 20); i++)
        status = ring_all_reduce(x, x, 60000, RING_FLOAT32, RING_SUM, comm, NULL);
}

static int expect_sums(ring_comm *comm, int sum)
{
    for (int i = 0; i < 10; i++)
        EXPECT(harness_expect_sum(comm, 1, sum, 60000) == 0, "sum %d", i);
    return 0;
}

static void meet(harness_board *board, int counter, int ranks)
{
    atomic_fetch_add(&board->counters[counter], 1);
    (void)harness_await(board, counter, ranks);
}

/* The victim is stopped or killed, and the others leave it out without waiting for it. A stopped
 * one continues afterwards, which does not matter to them, until it is killed. */
static int leave_victim_out(int rank, int ranks, harness_board *board, void *arg)
{
    scene *s = arg;
    pthread_t thread;
    ring_comm *comm, *rest, *again;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    meet(board, READY, ranks);
    if (rank == s->victim) {
        EXPECT(pthread_create(&thread, NULL, strike_later, s) == 0, "no thread");
        make_calls(comm, true);
        for (;;)
            pause();
    }
    make_calls(comm, false);
    const double since = harness_now();
    EXPECT_OK(ring_comm_exclude_abort(comm, &s->victim, 1, &rest));
    EXPECT(harness_is_prompt(since), "%.1f s", harness_now() - since);
    EXPECT(ring_comm_size(rest) == ranks - 1, "%d ranks", ring_comm_size(rest));
    EXPECT(expect_sums(rest, ranks - 1) == 0, "rank %d", rank);
    ring_comm_destroy(comm);
    meet(board, MADE, ranks - 1);
    EXPECT(s->signal != SIGSTOP || harness_await(board, RESUMED, 1), "it is still stopped");
    EXPECT(expect_sums(rest, ranks - 1) == 0, "rank %d", rank);
    meet(board, SUMMED, ranks - 1);
    EXPECT_OK(ring_comm_exclude_abort(rest, NULL, 0, &again));
    EXPECT(expect_sums(again, ranks - 1) == 0, "rank %d", rank);
    atomic_fetch_add(&board->counters[DONE], 1);
    ring_comm_destroy(again);
    ring_comm_destroy(rest);
    return 0;
}

static void resume_then_kill(harness_board *board, void *arg)
{
    const scene *s = arg;
    (void)harness_await(board, MADE, RANKS - 1);
    kill(board->pids[s->victim], SIGCONT);
    atomic_store(&board->counters[RESUMED], 1);
    kill_in_the_end(board, arg);
}

static void test_ranks_are_left_out_without_waiting_for_them(void **state)
{
    for (int i = 0; i < 2 * RANKS; i++) {
        scene s = {.victim = i % RANKS,
                   .signal = i < RANKS ? SIGKILL : SIGSTOP,
                   .delay_us = (unsigned)(i * 1500)};
        assert_int_equal(harness_run_beside(RANKS, leave_victim_out, &s, resume_then_kill), 1);
    }
}

/* Rank 1 should remain, but is lost. The others learn that, and leave it out, too. */
static int lose_one_that_remains(int rank, int ranks, harness_board *board, void *arg)
{
    static const int first[] = {2}, second[] = {2, 1};
    ring_comm *comm, *rest;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    meet(board, READY, ranks);
    if (rank == 2) {
        (void)harness_await(board, DONE, 2);
        ring_comm_destroy(comm);
        return 0;
    }
    if (rank == 1) {
        usleep(200000);
        raise(SIGKILL);
    }
    const ring_status status = ring_comm_exclude_abort(comm, first, 1, &rest);
    EXPECT(status == RING_ERR_PEER && harness_says("rank 1 ("), "%s: %s",
           ring_status_string(status), ring_last_error(NULL));
    EXPECT_OK(ring_comm_exclude_abort(comm, second, 2, &rest));
    EXPECT(expect_sums(rest, 2) == 0, "rank %d", rank);
    atomic_fetch_add(&board->counters[DONE], 1);
    ring_comm_destroy(rest);
    ring_comm_destroy(comm);
    return 0;
}

static void test_one_that_remains_is_lost(void **state)
{
    assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, lose_one_that_remains, NULL, NULL), 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_are_left_out_without_waiting_for_them),
        cmocka_unit_test(test_one_that_remains_is_lost),
        cmocka_unit_test(test_a_list_ends_with_a_lost_rank),
        cmocka_unit_test(test_those_that_stay_hear_of_a_lost_rank),
        cmocka_unit_test(test_a_probing_barrier_ends_with_a_lost_rank),
    };
    if (argc != 2)
        return 2;
    setenv("RING_TRANSPORT", argv[1], 1);
    setenv("RING_TIMEOUT", "600", 1);
    setenv("RING_PEER_TIMEOUT", "1.5", 1);
    return cmocka_run_group_tests_name("fault.create", tests, NULL, NULL);
}
