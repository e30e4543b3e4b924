/* SPDX-License-Identifier: Apache-2.0
 * A barrier that tells which ranks are missing, and ends nothing.
 * Usage: test_coll_probe TRANSPORT */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

enum { LONG = 1000 }; /* s, which no test waits for */
enum { STEP };        /* a counter of the board */

/* ---- All come -------------------------------------------------------------------------------- */

/* No rank is out before all were in: each counts itself first. Collectives are under way. */
static int meet_often(ring_comm *comm, harness_board *board, int counter, int rank)
{
    const int ranks = ring_comm_size(comm);
    for (int i = 0; i < 30; i++) {
        int missing[16], count = 77;
        int32_t x = rank;
        ring_work *work;
        ring_call call = RING_CALL_INIT;
        call.work = &work;
        EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, &call));
        atomic_fetch_add(&board->counters[counter], 1);
        EXPECT_OK(ring_barrier_probe(comm, LONG, i % 2 == 0 ? missing : NULL, &count));
        const int came = atomic_load(&board->counters[counter]);
        EXPECT(count == 0 && came >= ranks * (i + 1), "round %d: %d missing, %d came", i, count,
               came);
        EXPECT_OK(ring_wait(&work));
        EXPECT(x == ranks * (ranks - 1) / 2, "%d", x);
    }
    return 0;
}

static int all_come(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    ring_comm *half;
    int bad = meet_often(comm, board, 1, rank);
    EXPECT_OK(ring_comm_split(comm, rank % 2, -rank, &half));
    bad = bad || meet_often(half, board, 2 + rank % 2, ring_comm_rank(half));
    ring_comm_destroy(half);
    return bad;
}

/* ---- Some are missing ------------------------------------------------------------------------ */

/* Ranks 1 and 3 come when the round of the others is over: both that were in it have the same list.
 * Rank 0 asks until rank 2 waits, which hears nothing of rounds that it was not in. */
static int come_without(ring_comm *comm, harness_board *board, int rank)
{
    int missing[4] = {-1, -1, -1, -1}, count = 3;
    ring_status status = RING_IN_PROGRESS;
    while (rank == 0 && count == 3 && status == RING_IN_PROGRESS)
        status = ring_barrier_probe(comm, 0, missing, &count);
    if (rank == 2)
        status = ring_barrier_probe(comm, LONG, missing, &count);
    EXPECT(status == RING_IN_PROGRESS, "%s", ring_status_string(status));
    EXPECT(count == 2 && missing[0] == 1 && missing[1] == 3, "%d: %d, %d", count, missing[0],
           missing[1]);
    EXPECT(harness_says("2 of 4 ranks had not called") && harness_says("1 (") &&
               harness_says("3 ("),
           "%s", ring_last_error(NULL));
    EXPECT(ring_comm_status(comm) == RING_OK, "it has ended");
    atomic_fetch_add(&board->counters[STEP], 1);
    return 0;
}

static int who_is_missing_is_told_to_all_that_came(ring_comm *comm, int rank, int ranks,
                                                   harness_board *board)
{
    int32_t x = 1;
    int count, bad = 0;
    if (rank % 2 == 0)
        bad = come_without(comm, board, rank);
    else
        EXPECT(harness_await(board, STEP, 2), "the round is not over");
    EXPECT(bad == 0, "rank %d", rank);
    EXPECT_OK(ring_barrier_probe(comm, LONG, NULL, &count)); /* all come to the next round */
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, NULL));
    EXPECT(x == ranks, "%d", x);
    if (rank == 2) {
        EXPECT(ring_barrier_probe(comm, 0, NULL, NULL) == RING_IN_PROGRESS, "who is here?");
        EXPECT(harness_says("3 of 4 ranks"), "%s", ring_last_error(NULL));
    }
    EXPECT_OK(ring_barrier(comm, NULL));
    EXPECT_OK(ring_barrier_probe(comm, LONG, NULL, NULL));
    return 0;
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void *meet_once(void *arg)
{
    return ring_barrier_probe(arg, LONG, NULL, NULL) == RING_OK ? arg : NULL;
}

static int meet_by_threads(ring_comm *comm)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    bool bad = false;
    for (int t = 0; t < THREADS; t++)
        EXPECT(pthread_create(&threads[t], NULL, meet_once, comm) == 0, "no thread");
    for (int t = 0; t < THREADS; t++) {
        void *met;
        pthread_join(threads[t], &met);
        bad |= met == NULL;
    }
    EXPECT(!bad, "a thread did not meet the other rank");
    return 0;
}

/* Rank 1 comes until all threads of rank 0 have met it, some of them together. */
static int threads_of_a_rank_are_one(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    int bad = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank == 0) {
        bad = meet_by_threads(comm);
        atomic_store(&board->counters[STEP], 1);
    }
    while (rank == 1 && atomic_load(&board->counters[STEP]) == 0) {
        const ring_status status = ring_barrier_probe(comm, 0.01, NULL, NULL);
        EXPECT(status == RING_OK || status == RING_IN_PROGRESS, "%s", ring_last_error(NULL));
    }
    ring_comm_destroy(comm);
    return bad;
}

/* ---- Refused calls, and ends ----------------------------------------------------------------- */

static int refused(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    int count = 5;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(ring_barrier_probe(NULL, 1, NULL, &count) == RING_ERR_ARGUMENT, "NULL");
    EXPECT(ring_barrier_probe(comm, -1, NULL, &count) == RING_ERR_ARGUMENT, "a negative time");
    EXPECT_OK(ring_group_start());
    EXPECT(ring_barrier_probe(comm, 1, NULL, &count) == RING_ERR_USAGE, "in a group");
    EXPECT_OK(ring_group_end());
    if (rank == 0) {
        EXPECT(harness_await(board, STEP, ranks - 1), "nobody waits");
        EXPECT_OK(ring_comm_abort(comm, "enough"));
    } else {
        atomic_fetch_add(&board->counters[STEP], 1);
        EXPECT(ring_barrier_probe(comm, LONG, NULL, &count) == RING_ERR_ABORTED &&
                   harness_says("enough"),
               "%s", ring_last_error(NULL));
    }
    EXPECT(ring_barrier_probe(comm, LONG, NULL, &count) == RING_ERR_ABORTED &&
               harness_says("enough"),
           "%s", ring_last_error(NULL));
    ring_comm_destroy(comm);
    return 0;
}

static void test_a_verdict_ends_it(void **state)
{
    run(3, refused);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(all_come, 5, 1),
        CASE(who_is_missing_is_told_to_all_that_came, 4),
        CASE_ALONE(threads_of_a_rank_are_one, 2),
        cmocka_unit_test(test_a_verdict_ends_it),
    };
    if (argc != 2)
        return 2;
    cases_begin(argc, argv);
    setenv("RING_TIMEOUT", "60", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
