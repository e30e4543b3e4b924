/* SPDX-License-Identifier: Apache-2.0
 * Tests processes that exit without destroying their communicators: with RING_EXIT=leave they leave
 * if they have no call in flight, otherwise they are lost. Usage: test_coll_exit TRANSPORT */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

/* LATE_US: until an exit is over, and until ranks that were lost are known. */
enum { RANKS = 3, EAGER = 10000, LONG = 300000, LATE_US = 700000 };
enum { GONE, DONE }; /* counters of the board */

static void run_with(const char *mode, int ranks, harness_body body)
{
    unsetenv("RING_EXIT");
    if (mode != NULL)
        setenv("RING_EXIT", mode, 1);
    run(ranks, body);
}

/* Rank 1 returns, and with that exits; its memory stays reachable, which leak checkers want. */
static int32_t sent[EAGER], received[EAGER];

/* The others wait until rank 1 is about to exit and has had time for that. */
static int await_exit(harness_board *board)
{
    EXPECT(harness_await(board, GONE, 1), "rank 1 is late");
    usleep(LATE_US);
    return 0;
}

static int leave_now(harness_board *board)
{
    atomic_fetch_add(&board->counters[GONE], 1);
    return 0;
}

/* ---- Calls that do not need the rank ------------------------------------------------------- */

/* Messages that the rank has sent arrive after its exit; the others continue without it. */
static int others_continue(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm, *rest;
    static int32_t x[LONG];
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_comm_split(comm, rank == 1 ? RING_SPLIT_NONE : 0, 0, &rest));
    for (int i = 0; i < EAGER; i++)
        sent[i] = i + rank;
    if (rank == 1) {
        EXPECT_OK(ring_send(sent, EAGER, RING_INT32, 0, comm, NULL));
        return leave_now(board);
    }
    ring_work *work;
    ring_call call = RING_CALL_INIT;
    call.work = &work; /* in flight while the rank exits */
    x[LONG - 1] = rank;
    if (rank == 0)
        EXPECT_OK(ring_recv(x, LONG, RING_INT32, 2, comm, &call));
    EXPECT(await_exit(board) == 0, "rank %d", rank);
    if (rank == 2)
        EXPECT_OK(ring_send(x, LONG, RING_INT32, 0, comm, NULL));
    else
        EXPECT_OK(ring_wait(&work));
    EXPECT(x[LONG - 1] == 2, "%d", (int)x[LONG - 1]);
    if (rank == 0) {
        EXPECT_OK(ring_recv(received, EAGER, RING_INT32, 1, comm, NULL));
        EXPECT(received[EAGER - 1] == EAGER, "%d", (int)received[EAGER - 1]);
    }
    EXPECT(harness_expect_sum(rest, rank, 2, 1000) == 0, "the others");
    EXPECT_OK(ring_comm_status(comm));
    ring_comm_destroy(rest);
    ring_comm_destroy(comm);
    return 0;
}

/* ---- Calls that need the rank -----------------------------------------------------------------
 */

/* One of them waits when the rank exits, one is made later; with a link to the rank, and without.
 */
static int others_need_it(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    int32_t x = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (arg == NULL)
        EXPECT_OK(ring_barrier(comm, NULL));
    if (rank == 1)
        return leave_now(board);
    if (rank == 2)
        EXPECT(await_exit(board) == 0, "rank %d", rank);
    const double since = harness_now();
    EXPECT(ring_recv(&x, 1, RING_INT32, 1, comm, NULL) == RING_ERR_PEER, "%s",
           ring_last_error(NULL));
    EXPECT(harness_is_prompt(since), "after %.2f s", harness_now() - since);
    EXPECT(harness_says("left the communicator while it was needed") && harness_says("rank 1"),
           "%s", ring_last_error(NULL));
    atomic_fetch_add(&board->counters[DONE], 1);
    EXPECT(harness_await(board, DONE, ranks - 1), "a rank is late");
    ring_comm_destroy(comm);
    return 0;
}

static int others_need_it_first(int rank, int ranks, harness_board *board, void *arg)
{
    static int first;
    return others_need_it(rank, ranks, board, &first);
}

/* ---- Ranks that are lost
 * ------------------------------------------------------------------------- */

static int expect_loss(ring_comm *comm, harness_board *board)
{
    EXPECT(await_exit(board) == 0, "rank 1 is late");
    for (const double since = harness_now();
         ring_comm_status(comm) == RING_OK && harness_is_prompt(since);)
        usleep(1000);
    EXPECT(ring_comm_status(comm) == RING_ERR_PEER, "%s", ring_last_error(comm));
    EXPECT(strstr(ring_last_error(comm), "was lost") != NULL, "%s", ring_last_error(comm));
    ring_comm_destroy(comm);
    return 0;
}

static int exits_with_a_call(int rank, int ranks, harness_board *board, void *arg)
{
    static ring_work *work;
    ring_comm *comm;
    ring_call call = RING_CALL_INIT;
    call.work = &work;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank != 1)
        return expect_loss(comm, board);
    EXPECT_OK(ring_recv(received, 1, RING_INT32, 0, comm, &call));
    return leave_now(board);
}

static int exits_at_rest(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    return rank != 1 ? expect_loss(comm, board) : leave_now(board);
}

/* A communicator with a call holds the others of its start back. */
static int exits_with_a_call_on_a_derived_one(int rank, int ranks, harness_board *board, void *arg)
{
    static ring_work *work;
    ring_comm *comm, *second;
    ring_call call = RING_CALL_INIT;
    call.work = &work;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_comm_dup(comm, &second));
    if (rank == 1) {
        EXPECT_OK(ring_recv(received, 1, RING_INT32, 0, second, &call));
        return leave_now(board);
    }
    EXPECT(expect_loss(comm, board) == 0, "the first one");
    return expect_loss(second, board);
}

/* ---- Threads and children
 * -------------------------------------------------------------------------- */

static void *call_forever(void *arg)
{
    ring_comm *comm = arg;
    int32_t x = 1;
    while (ring_comm_status(comm) == RING_OK) {
        (void)ring_comm_flush(comm, 0);
        (void)ring_send(&x, 1, RING_INT32, 1, comm, NULL); /* to itself: waits for its deadline */
    }
    return NULL;
}

/* Another thread of the process is in a call. */
static int exits_beside_a_thread(int rank, int ranks, harness_board *board, void *arg)
{
    pthread_t thread;
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank != 1)
        return expect_loss(comm, board);
    EXPECT(pthread_create(&thread, NULL, call_forever, comm) == 0, "no thread");
    pthread_detach(thread);
    for (const double since = harness_now(); ring_comm_flush(comm, 0) == RING_OK; usleep(1000))
        EXPECT(harness_is_prompt(since), "the thread has made no call");
    return leave_now(board);
}

static void *make_calls(void *arg)
{
    ring_comm *comm = arg;
    int32_t x[2] = {1, 0};
    while (ring_comm_status(comm) == RING_OK) {
        ring_group_start();
        ring_send(&x[0], 1, RING_INT32, 1, comm, NULL);
        ring_recv(&x[1], 1, RING_INT32, 1, comm, NULL);
        ring_group_end();
    }
    return NULL;
}

/* Another thread makes short calls, between which the process leaves, or in which it is lost; the
 * exit takes little time. */
static int exits_between_calls_of_threads(int rank, int ranks, harness_board *board, void *arg)
{
    enum { THREADS = 3 };
    pthread_t thread;
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank != 1) {
        EXPECT(await_exit(board) == 0, "rank %d", rank);
        ring_comm_destroy(comm);
        return 0;
    }
    for (int i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&thread, NULL, make_calls, comm) == 0, "no thread");
        pthread_detach(thread);
    }
    usleep(50000);
    return leave_now(board);
}

/* The leak sanitizer would find what only the parent's threads still use. */
static void end_child(void)
{
#ifdef __SANITIZE_ADDRESS__
    _exit(0);
#else
    exit(0);
#endif
}

/* A child of the rank exits, which has no effect. */
static int a_child_exits(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    int state;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_barrier(comm, NULL));
    const pid_t child = rank == 1 ? fork() : 0;
    if (rank == 1 && child == 0)
        end_child();
    if (rank == 1)
        EXPECT(waitpid(child, &state, 0) == child && state == 0, "the child: %x", state);
    EXPECT(harness_expect_sum(comm, rank, ranks * (ranks - 1) / 2, 1000) == 0, "rank %d", rank);
    ring_comm_destroy(comm);
    return 0;
}

/* All ranks exit at once, with several communicators. */
static int all_exit(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm, *second;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_comm_dup(comm, &second));
    EXPECT(harness_expect_sum(second, rank, ranks * (ranks - 1) / 2, 1000) == 0, "rank %d", rank);
    return 0;
}

static void test_all_exit_quickly(void **state)
{
    const double since = harness_now();
    run_with("leave", 8, all_exit);
    assert_true(harness_is_prompt(since));
}

static void test_a_rank_leaves(void **state)
{
    run_with("leave", RANKS, others_continue);
    run_with("leave", RANKS, others_need_it);
    run_with("leave", RANKS, others_need_it_first);
    run_with("leave", RANKS, a_child_exits);
}

static void test_a_rank_is_lost(void **state)
{
    run_with(NULL, RANKS, exits_at_rest);
    run_with("lost", RANKS, exits_at_rest);
    run_with("leave", RANKS, exits_with_a_call);
    run_with("leave", RANKS, exits_with_a_call_on_a_derived_one);
}

static void test_other_threads_run(void **state)
{
    run_with("leave", RANKS, exits_beside_a_thread);
    const double since = harness_now();
    run_with("leave", RANKS, exits_between_calls_of_threads);
    assert_true(harness_is_prompt(since));
}

/* ---- Settings ----------------------------------------------------------------------------------
 */

/* Of one communicator. */
static int by_config(int rank, int ranks, harness_board *board, void *arg)
{
    static const char *const settings[] = {"RING_EXIT=leave", NULL};
    static const char *const wrong[] = {"RING_EXIT=stay", NULL};
    ring_config config = RING_CONFIG_INIT;
    ring_comm *comm;
    config.settings = rank == 1 ? settings : NULL;
    if (rank == 0) {
        EXPECT_OK(ring_get_unique_id(&board->id));
        atomic_store(&board->id_ready, 1);
    }
    while (!atomic_load(&board->id_ready))
        usleep(1000);
    EXPECT_OK(ring_comm_init_config(&comm, ranks, &board->id, rank, &config));
    if (rank == 1)
        return leave_now(board);
    EXPECT(await_exit(board) == 0, "rank %d", rank);
    EXPECT_OK(ring_comm_status(comm));
    ring_comm_destroy(comm);
    config.settings = wrong;
    config.quiet = 1;
    EXPECT(ring_comm_init_config(&comm, 1, &board->id, 0, &config) == RING_ERR_CONFIG, "stay");
    EXPECT(harness_says("RING_EXIT=stay: want lost or leave"), "%s", ring_last_error(NULL));
    return 0;
}

static void test_the_setting_of_one_communicator(void **state)
{
    run_with(NULL, RANKS, by_config);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rank_leaves),
        cmocka_unit_test(test_a_rank_is_lost),
        cmocka_unit_test(test_other_threads_run),
        cmocka_unit_test(test_all_exit_quickly),
        cmocka_unit_test(test_the_setting_of_one_communicator),
    };
    cases_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
