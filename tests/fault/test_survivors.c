/* SPDX-License-Identifier: Apache-2.0
 *
 * Survivors continue: a rank is killed at a random moment of a collective, rank 0 as often as the
 * others; the survivors shrink the communicator, and every collective is right on the new one.
 * RING_TEST_KILLS sets the number of kills (8). Usage: test_fault_shrink TRANSPORT */
#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

enum { RANKS = 4, COUNT = 60000 };

typedef struct scene {
    int victim, signal;
    unsigned delay_us;
} scene;

/* ---- Right values among the survivors ------------------------------------------ */

/* old[r]: what rank r of the communicator was called before. */
static int check_sums(ring_comm *comm, int mine, const int32_t *old)
{
    static int32_t x[COUNT], y[COUNT];
    const int ranks = ring_comm_size(comm), rank = ring_comm_rank(comm), part = COUNT / ranks;
    int sum = 0;
    for (int r = 0; r < ranks; r++)
        sum += old[r];
    for (int i = 0; i < COUNT; i++)
        x[i] = mine * (i % 5 + 1);
    EXPECT_OK(ring_all_reduce(x, y, COUNT, RING_INT32, RING_SUM, comm, NULL));
    for (int i = 0; i < COUNT; i++)
        EXPECT(y[i] == sum * (i % 5 + 1), "all_reduce, element %d: %d", i, y[i]);
    EXPECT_OK(ring_reduce_scatter(x, y, (size_t)part, RING_INT32, RING_SUM, comm, NULL));
    for (int i = 0; i < part; i++)
        EXPECT(y[i] == sum * ((rank * part + i) % 5 + 1), "reduce_scatter, element %d", i);
    EXPECT_OK(ring_reduce(x, y, COUNT, RING_INT32, RING_SUM, ranks - 1, comm, NULL));
    EXPECT(rank < ranks - 1 || y[7] == sum * 3, "reduce: %d", y[7]);
    return 0;
}

static int check_moves(ring_comm *comm, int mine, const int32_t *old)
{
    const int ranks = ring_comm_size(comm), rank = ring_comm_rank(comm);
    int32_t all[RANKS], first = mine, from = -1;
    EXPECT_OK(ring_all_gather(&first, all, 1, RING_INT32, comm, NULL));
    EXPECT(memcmp(all, old, (size_t)ranks * sizeof *all) == 0, "all_gather");
    EXPECT_OK(ring_broadcast(&first, &first, 1, RING_INT32, 0, comm, NULL));
    EXPECT(first == old[0], "broadcast: %d", first);
    EXPECT_OK(ring_send(&mine, 1, RING_INT32, (rank + 1) % ranks, comm, NULL));
    EXPECT_OK(ring_recv(&from, 1, RING_INT32, (rank + ranks - 1) % ranks, comm, NULL));
    EXPECT(from == old[(rank + ranks - 1) % ranks], "recv: %d", from);
    EXPECT_OK(ring_barrier(comm, NULL));
    return 0;
}

static int check_survivors(ring_comm *comm, int mine, int victim)
{
    int32_t old[RANKS];
    int count = 0;
    for (int r = 0; r < RANKS; r++)
        if (r != victim)
            old[count++] = r;
    EXPECT(ring_comm_size(comm) == RANKS - 1 && old[ring_comm_rank(comm)] == mine, "rank %d of %d",
           ring_comm_rank(comm), ring_comm_size(comm));
    return check_sums(comm, mine, old) || check_moves(comm, mine, old);
}

/* ---- Until somebody dies ------------------------------------------------------- */

static void *strike_later(void *arg)
{
    const scene *s = arg;
    usleep(s->delay_us);
    kill(getpid(), s->signal);
    return NULL;
}

static int work_until_failure(ring_comm *comm)
{
    static float x[COUNT];
    const double end = harness_now() + 60;
    ring_status status = RING_OK;
    while (status == RING_OK && harness_now() < end)
        status = ring_all_reduce(x, x, COUNT, RING_FLOAT32, RING_SUM, comm, NULL);
    EXPECT(status == RING_ERR_PEER, "%s: %s", ring_status_string(status), ring_last_error(comm));
    return 0;
}

static int survive(int rank, int ranks, harness_board *board, void *arg)
{
    scene *s = arg;
    pthread_t thread;
    ring_comm *comm, *left;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(ring_comm_shrink(comm, &left) == RING_ERR_USAGE && left == NULL, "nobody has failed");
    for (board->counters[0]++; board->counters[0] < ranks;)
        usleep(100);
    if (rank == s->victim)
        EXPECT(pthread_create(&thread, NULL, strike_later, s) == 0, "no thread");
    EXPECT(work_until_failure(comm) == 0, "the failure");
    EXPECT_OK(ring_comm_shrink(comm, &left));
    const int bad = check_survivors(left, rank, s->victim);
    ring_comm_destroy(comm); /* before or after the new one */
    const int again = bad || check_survivors(left, rank, s->victim);
    ring_comm_destroy(left);
    return again;
}

static void test_survivors_of_a_kill_go_on(void **state)
{
    const int kills = (int)harness_number("RING_TEST_KILLS", 8);
    unsigned dice = 12345;
    for (int i = 0; i < kills; i++) {
        dice = dice * 1103515245u + 12345u;
        scene s = {.victim = i % RANKS, .signal = SIGKILL, .delay_us = dice >> 16 & 0x3fff};
        assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, survive, &s, NULL), 1);
    }
}

/* ---- One that is stopped ------------------------------------------------------- */

enum { WAITING, ASKED, GONE };

/* Again and again, until the end of the stopped one has been noticed. */
static ring_status shrink_when_known(ring_comm *comm, ring_comm **left)
{
    const double began = harness_now();
    ring_status status = ring_comm_shrink(comm, left);
    while (status == RING_ERR_PEER && harness_is_prompt(began)) {
        usleep(1000);
        status = ring_comm_shrink(comm, left);
    }
    return status;
}

static int meet_stopped(int rank, int ranks, harness_board *board, void *arg)
{
    scene *s = arg;
    pthread_t thread;
    ring_comm *comm, *left;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank == s->victim)
        EXPECT(pthread_create(&thread, NULL, strike_later, s) == 0, "no thread");
    EXPECT(work_until_failure(comm) == 0, "the failure");
    EXPECT(ring_comm_shrink(comm, &left) == RING_ERR_PEER && left == NULL, "it might wake");
    EXPECT(strstr(ring_last_error(NULL), "stopped") != NULL, "%s", ring_last_error(NULL));
    atomic_fetch_add(&board->counters[ASKED], 1);
    while (atomic_load(&board->counters[GONE]) == 0)
        usleep(1000);
    EXPECT_OK(shrink_when_known(comm, &left));
    const int bad = check_survivors(left, rank, s->victim);
    ring_comm_destroy(left);
    ring_comm_destroy(comm);
    return bad;
}

static void kill_when_asked(harness_board *board, void *arg)
{
    const scene *s = arg;
    const double end = harness_now() + 60;
    while (atomic_load(&board->counters[ASKED]) < RANKS - 1 && harness_now() < end)
        usleep(1000);
    kill(board->pids[s->victim], SIGKILL);
    atomic_store(&board->counters[GONE], 1);
}

static void test_a_stopped_rank_is_left_out_once_it_is_gone(void **state)
{
    for (int victim = 0; victim < RANKS; victim += RANKS - 1) {
        scene s = {.victim = victim, .signal = SIGSTOP, .delay_us = 2000};
        assert_int_equal(harness_run_beside(RANKS, meet_stopped, &s, kill_when_asked), 1);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_survivors_of_a_kill_go_on),
        cmocka_unit_test(test_a_stopped_rank_is_left_out_once_it_is_gone),
    };
    if (argc != 2)
        return 2;
    setenv("RING_TRANSPORT", argv[1], 1);
    setenv("RING_TIMEOUT", "20", 1);
    setenv("RING_PEER_TIMEOUT", "1.5", 1);
    return cmocka_run_group_tests_name("fault.shrink", tests, NULL, NULL);
}
