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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
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
