/* SPDX-License-Identifier: Apache-2.0
 * Communicators that their members make alone: by a list of ranks, or of those that are left out.
 * Usage: test_coll_create TRANSPORT */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

/* ---- Values -------------------------------------------------------------------------------- */

/* @p comm has these ranks of the parent, in this order, and computes. */
static int expect_members(ring_comm *comm, int mine, const int *want, int count)
{
    enum { COUNT = 70001 };
    int32_t all[64], sum = 0;
    const int32_t me = mine;
    EXPECT(ring_comm_size(comm) == count, "%d ranks, want %d", ring_comm_size(comm), count);
    EXPECT(want[ring_comm_rank(comm)] == mine, "rank %d here", ring_comm_rank(comm));
    EXPECT_OK(ring_all_gather(&me, all, 1, RING_INT32, comm, NULL));
    for (int r = 0; r < count; r++) {
        EXPECT(all[r] == want[r], "rank %d was %d, want %d", r, all[r], want[r]);
        sum += want[r];
    }
    return harness_expect_sum(comm, mine, sum, COUNT);
}

/* ---- By members alone ------------------------------------------------------------------------ */

/* The other ranks do nothing but wait for messages of the parent, which goes on meanwhile. */
static int some(int rank, int ranks, harness_board *board, void *arg)
{
    static const int list[] = {4, 1, 3};
    ring_comm *comm, *three = NULL;
    int32_t x = rank;
    ring_work *work;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    ring_call call = RING_CALL_INIT;
    call.work = &work;
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, &call));
    int bad = 0;
    if (rank == 4 || rank == 1 || rank == 3) {
        for (int i = 0; i < 3 && bad == 0; i++) { /* the same list again, one after the other */
            EXPECT_OK(ring_comm_create(comm, list, 3, 0, &three));
            bad = expect_members(three, rank, list, 3);
            ring_comm_destroy(three);
        }
    }
    EXPECT_OK(ring_wait(&work));
    EXPECT(x == 10, "%d", x);
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_comm_destroy(comm);
    return bad;
}

static void test_members_alone_make_a_communicator(void **state)
{
    run(5, some);
}

/* One outlives its parent; and one is made of one that was made. */
static int one_is_made_of_another_and_outlives_it(int rank, int ranks, harness_board *board,
                                                  void *arg)
{
    static const int list[] = {3, 2, 0}, inner[] = {0, 2}, numbers[] = {3, 0};
    ring_comm *comm, *made, *two;
    int bad = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank == 1) {
        ring_comm_destroy(comm);
        return 0;
    }
    EXPECT_OK(ring_comm_create(comm, list, 3, 7, &made));
    ring_comm_destroy(comm);
    if (rank != 2) {
        EXPECT_OK(ring_comm_create(made, inner, 2, 7, &two));
        bad = expect_members(two, rank, numbers, 2);
        ring_comm_destroy(two);
    }
    bad = bad || expect_members(made, rank, list, 3);
    ring_comm_destroy(made);
    return bad;
}

static int alone(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm, *own;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_comm_create(comm, &rank, 1, 0, &own));
    const int bad = expect_members(own, rank, &rank, 1);
    ring_comm_destroy(own);
    ring_comm_destroy(comm);
    return bad;
}

static void test_a_list_of_one_is_a_rank_alone(void **state)
{
    run(3, alone);
    run(1, alone);
}

/* ---- Refused calls --------------------------------------------------------------------------- */

static int refused(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm, *out = (ring_comm *)board;
    const int beyond[] = {0, 2}, twice[] = {rank, rank}, other[] = {1 - rank}, both[] = {0, 1};
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(ring_comm_create(NULL, both, 2, 0, &out) == RING_ERR_ARGUMENT, "NULL");
    EXPECT(ring_comm_create(comm, both, 2, 0, NULL) == RING_ERR_ARGUMENT, "NULL");
    EXPECT(ring_comm_create(comm, NULL, 2, 0, &out) == RING_ERR_ARGUMENT && out == NULL, "NULL");
    EXPECT(ring_comm_create(comm, both, 3, 0, &out) == RING_ERR_ARGUMENT, "too long");
    EXPECT(ring_comm_create(comm, both, 0, 0, &out) == RING_ERR_ARGUMENT &&
               harness_says("does not contain this rank"),
           "%s", ring_last_error(NULL));
    EXPECT(ring_comm_create(comm, both, 2, -1, &out) == RING_ERR_ARGUMENT && harness_says("tag"),
           "%s", ring_last_error(NULL));
    EXPECT(ring_comm_create(comm, beyond, 2, 0, &out) == RING_ERR_ARGUMENT &&
               harness_says("rank 2"),
           "%s", ring_last_error(NULL));
    EXPECT(ring_comm_create(comm, twice, 2, 0, &out) == RING_ERR_ARGUMENT && harness_says("twice"),
           "%s", ring_last_error(NULL));
    EXPECT(ring_comm_create(comm, other, 1, 0, &out) == RING_ERR_ARGUMENT &&
               harness_says("does not contain"),
           "%s", ring_last_error(NULL));
    EXPECT(ring_comm_exclude(comm, &rank, 1, &out) == RING_ERR_ARGUMENT &&
               harness_says("this rank"),
           "%s", ring_last_error(NULL));
    EXPECT(ring_comm_exclude(comm, twice, 2, &out) == RING_ERR_ARGUMENT && harness_says("twice"),
           "%s", ring_last_error(NULL));
    EXPECT(ring_comm_exclude_abort(comm, &rank, 1, &out) == RING_ERR_ARGUMENT &&
               harness_says("ring_comm_exclude_abort: the list contains this rank"),
           "%s", ring_last_error(NULL));
    EXPECT_OK(ring_group_start());
    EXPECT(ring_comm_create(comm, both, 2, 0, &out) == RING_ERR_USAGE &&
               harness_says("group is open"),
           "%s", ring_last_error(NULL));
    EXPECT_OK(ring_group_end());
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_comm_destroy(comm);
    return 0;
}

static void test_wrong_lists_are_refused(void **state)
{
    run(2, refused);
}

/* ---- Ranks that call something else ---------------------------------------------------------- */

static int try_pair(ring_comm *comm, int first, int second, int tag, ring_comm **out)
{
    const int list[] = {first, second};
    return (int)ring_comm_create(comm, list, 2, tag, out);
}

/* Rank 1 calls for another list, or not at all; then with the right one, which is a new round. */
static int missing(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm, *two = NULL;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank == 0) {
        EXPECT(try_pair(comm, 0, 1, 0, &two) == RING_ERR_TIMEOUT && two == NULL, "made");
        EXPECT(harness_says("1 of 2 ranks did not call") && harness_says("rank 1 ("), "%s",
               ring_last_error(NULL));
        EXPECT(!harness_says("another list"), "%s", ring_last_error(NULL));
        atomic_store(&board->counters[0], 1);
    }
    EXPECT(harness_await(board, 0, 1), "rank 0 waits");
    EXPECT_OK(ring_barrier(comm, NULL)); /* the parent lives on */
    if (rank < 2) {
        static const int want[] = {0, 1};
        EXPECT_OK((ring_status)try_pair(comm, 0, 1, 0, &two));
        const int bad = expect_members(two, rank, want, 2);
        ring_comm_destroy(two);
        EXPECT(bad == 0, "members");
        EXPECT(try_pair(comm, rank, 1 - rank, 5 + rank, &two) == RING_ERR_TIMEOUT, "they match");
        EXPECT(harness_says(rank == 0 ? "which called with another list of 2 ranks, tag 6"
                                      : "which called with another list of 2 ranks, tag 5"),
               "%s", ring_last_error(NULL));
        atomic_fetch_add(&board->counters[1], 1);
    }
    EXPECT(harness_await(board, 1, 2), "ranks 0 and 1 wait");
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_comm_destroy(comm);
    return 0;
}

static void test_who_is_missing_is_named_and_the_parent_lives(void **state)
{
    if (strcmp(cases_transport(), "loop") != 0 && strcmp(cases_transport(), "tcp") != 0)
        return; /* no data goes over them: it takes some seconds */
    setenv("RING_TIMEOUT", "3", 1);
    run(3, missing);
    setenv("RING_TIMEOUT", "60", 1);
}

/* ---- Several at once ------------------------------------------------------------------------- */

enum { MAKERS = 3, TIMES = 5 };

typedef struct maker {
    pthread_t thread;
    ring_comm *comm;
    int rank, tag, bad;
    _Atomic int *refused;
} maker;

static int make_of_all(ring_comm *comm, int rank, int tag)
{
    static const int all[] = {2, 1, 0}, pair[] = {0, 2};
    for (int i = 0; i < TIMES; i++) {
        ring_comm *made;
        EXPECT_OK(ring_comm_create(comm, all, 3, tag, &made));
        int bad = expect_members(made, rank, all, 3);
        ring_comm_destroy(made);
        if (rank != 1) {
            EXPECT_OK(ring_comm_create(comm, pair, 2, tag, &made));
            bad = bad || expect_members(made, rank, pair, 2);
            ring_comm_destroy(made);
        }
        EXPECT(bad == 0, "tag %d", tag);
    }
    return 0;
}

static void *make_some(void *arg)
{
    maker *m = arg;
    m->bad = make_of_all(m->comm, m->rank, m->tag);
    return NULL;
}

/* Threads of each rank make communicators of overlapping lists, told apart by tags. */
static int threads_make_several_at_once(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    maker makers[MAKERS];
    int bad = 0;
    for (int t = 0; t < MAKERS; t++) {
        makers[t] = (maker){.comm = comm, .rank = rank, .tag = rank == 1 ? MAKERS - 1 - t : t};
        EXPECT(pthread_create(&makers[t].thread, NULL, make_some, &makers[t]) == 0, "no thread");
    }
    for (int t = 0; t < MAKERS; t++) {
        pthread_join(makers[t].thread, NULL);
        bad |= makers[t].bad;
    }
    EXPECT_OK(ring_barrier(comm, NULL));
    return bad;
}

static void *create_pair(void *arg)
{
    maker *m = arg;
    ring_comm *two;
    m->bad = try_pair(m->comm, 0, 1, 0, &two);
    if (m->bad == RING_ERR_USAGE)
        atomic_store(m->refused, 1);
    ring_comm_destroy(two);
    return NULL;
}

/* Two threads of rank 0 call with one list and tag: one of them is refused, and then rank 1 calls.
 */
static int two_threads_with_one_list_and_tag(ring_comm *comm, int rank, int ranks,
                                             harness_board *board)
{
    maker makers[2];
    EXPECT(rank == 0 || harness_await(board, 0, 1), "no thread was refused");
    const int threads = rank == 0 ? 2 : 1;
    for (int t = 0; t < threads; t++) {
        makers[t] = (maker){.comm = comm, .refused = &board->counters[0]};
        EXPECT(pthread_create(&makers[t].thread, NULL, create_pair, &makers[t]) == 0, "no thread");
    }
    for (int t = 0; t < threads; t++)
        pthread_join(makers[t].thread, NULL);
    const int bad = rank == 0 ? makers[0].bad + makers[1].bad - RING_ERR_USAGE : makers[0].bad;
    EXPECT(bad == RING_OK, "rank %d: %d", rank, bad);
    return 0;
}

/* ---- Leaving some out ------------------------------------------------------------------------ */

static int some_are_left_out_and_the_parent_lives(int rank, int ranks, harness_board *board,
                                                  void *arg)
{
    static const int out[] = {3, 1}, want[] = {0, 2, 4}, all[] = {0, 1, 2, 3, 4};
    ring_comm *comm, *fewer;
    int bad = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank % 2 == 0) {
        EXPECT_OK(ring_comm_exclude(comm, out, 2, &fewer));
        bad = expect_members(fewer, rank, want, 3);
        ring_comm_destroy(fewer);
    }
    EXPECT_OK(ring_comm_exclude(comm, NULL, 0, &fewer));
    ring_comm_destroy(comm);
    bad = bad || expect_members(fewer, rank, all, 5);
    ring_comm_destroy(fewer);
    return bad;
}

/* ---- Leaving some out beside an abort -------------------------------------------------------- */

static ring_status await_end(const ring_comm *comm)
{
    const double since = harness_now();
    while (ring_comm_status(comm) == RING_OK && harness_is_prompt(since))
        usleep(500);
    return ring_comm_status(comm);
}

/* Of five ranks, rank 1 is in a call and rank 3 is idle while the others leave them out; then these
 * leave rank 2 out. */
static int some_are_left_out_beside_an_abort(int rank, int ranks, harness_board *board, void *arg)
{
    static const int out[] = {3, 1}, want[] = {0, 2, 4}, again[] = {1}, two[] = {0, 4};
    static float x[5][70000];
    ring_comm *comm, *fewer, *pair;
    ring_work *work = NULL;
    ring_call call = RING_CALL_INIT;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    call.work = &work;
    if (rank != 3)
        EXPECT_OK(ring_all_reduce(x[rank], x[rank], 70000, RING_FLOAT32, RING_SUM, comm, &call));
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    if (rank % 2 == 0)
        EXPECT_OK(ring_comm_exclude_abort(comm, out, 2, &fewer));
    EXPECT(ring_wait(&work) == (rank == 3 ? RING_OK : RING_ERR_ABORTED), "rank %d", rank);
    EXPECT(await_end(comm) == RING_ERR_ABORTED &&
               strstr(ring_last_error(comm), "leaves ranks out of it") != NULL,
           "%s", ring_last_error(comm));
    if (rank % 2 == 0) {
        int bad = expect_members(fewer, rank, want, 3);
        atomic_fetch_add(&board->counters[1], 1);
        EXPECT(harness_await(board, 1, 3), "a rank is late");
        if (rank != 2) {
            EXPECT_OK(ring_comm_exclude_abort(fewer, again, 1, &pair));
            bad = bad || expect_members(pair, rank, two, 2);
            ring_comm_destroy(pair);
        }
        EXPECT(bad == 0 && await_end(fewer) == RING_ERR_ABORTED, "%s", ring_last_error(fewer));
        ring_comm_destroy(fewer);
    }
    ring_comm_destroy(comm);
    return 0;
}

/* The communicator keeps its first error, and all ranks remain. */
static int none_are_left_out_of_one_that_has_failed(int rank, int ranks, harness_board *board,
                                                    void *arg)
{
    static const int all[] = {0, 1, 2};
    ring_comm *comm, *same;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank == 1)
        EXPECT_OK(ring_comm_abort(comm, "enough"));
    EXPECT(ring_barrier(comm, NULL) == RING_ERR_ABORTED, "the barrier");
    EXPECT_OK(ring_comm_exclude_abort(comm, NULL, 0, &same));
    EXPECT(strstr(ring_last_error(comm), "enough") != NULL, "%s", ring_last_error(comm));
    ring_comm_destroy(comm);
    const int bad = expect_members(same, rank, all, 3);
    ring_comm_destroy(same);
    return bad;
}

/* Rank 1, which remains, does not call; then it does, which is a new round. */
static int missing_beside_an_abort(int rank, int ranks, harness_board *board, void *arg)
{
    static const int out[] = {2}, want[] = {0, 1};
    ring_comm *comm, *two = NULL;
    int bad = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank == 0) {
        EXPECT(ring_comm_exclude_abort(comm, out, 1, &two) == RING_ERR_TIMEOUT && two == NULL,
               "made");
        EXPECT(harness_says("1 of 2 ranks did not call") && harness_says("rank 1 ("), "%s",
               ring_last_error(NULL));
        atomic_store(&board->counters[0], 1);
    }
    EXPECT(harness_await(board, 0, 1), "rank 0 waits");
    EXPECT(await_end(comm) == RING_ERR_ABORTED, "%s", ring_last_error(comm));
    if (rank < 2) {
        EXPECT_OK(ring_comm_exclude_abort(comm, out, 1, &two));
        bad = expect_members(two, rank, want, 2);
        ring_comm_destroy(two);
    }
    ring_comm_destroy(comm);
    return bad;
}

/* Rank 1, which should remain, destroys the communicator instead. */
static int leaves_beside_an_abort(int rank, int ranks, harness_board *board, void *arg)
{
    static const int out[] = {2};
    ring_comm *comm, *two;
    const double since = harness_now();
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank == 0) {
        EXPECT(ring_comm_exclude_abort(comm, out, 1, &two) == RING_ERR_PEER, "made");
        EXPECT(harness_says("rank 1 (") && harness_says("has left"), "%s", ring_last_error(NULL));
        EXPECT(harness_is_prompt(since), "%.1f s", harness_now() - since);
    } else {
        EXPECT(await_end(comm) == RING_ERR_ABORTED, "%s", ring_last_error(comm));
    }
    ring_comm_destroy(comm);
    return 0;
}

static void test_a_rank_that_remains_is_missing_beside_an_abort(void **state)
{
    setenv("RING_TIMEOUT", "2", 1);
    run(3, missing_beside_an_abort);
    setenv("RING_TIMEOUT", "60", 1);
}

/* ---- Starts that return at once; forks ------------------------------------------------------- */

static int a_parent_may_still_be_starting(int rank, int ranks, harness_board *board, void *arg)
{
    static const int want[] = {2, 0};
    ring_comm *comm, *two;
    ring_config config = RING_CONFIG_INIT;
    int bad = 0;
    config.nonblocking = 1;
    if (rank == 0) {
        EXPECT_OK(ring_get_unique_id(&board->id));
        atomic_store(&board->id_ready, 1);
    }
    while (atomic_load(&board->id_ready) == 0)
        usleep(500);
    EXPECT_OK(ring_comm_init_config(&comm, ranks, &board->id, rank, &config));
    if (rank != 1) {
        EXPECT_OK(ring_comm_create(comm, want, 2, 0, &two));
        bad = expect_members(two, rank, want, 2);
        ring_comm_destroy(two);
    }
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_comm_destroy(comm);
    return bad;
}

static int in_a_child(int rank, int ranks, harness_board *board, void *arg)
{
    static const int both[] = {0, 1};
    ring_comm *comm, *two;
    int status = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const pid_t child = fork();
    if (child == 0)
        _exit(ring_comm_create(comm, both, 2, 0, &two) == RING_ERR_USAGE && two == NULL ? 0 : 1);
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "the child ended with %#x", status);
    EXPECT_OK(ring_comm_create(comm, both, 2, 0, &two));
    const int bad = expect_members(two, rank, both, 2);
    ring_comm_destroy(two);
    ring_comm_destroy(comm);
    return bad;
}

static void test_a_forked_child_is_refused(void **state)
{
    if (cases_kind() == HARNESS_PROCESSES)
        run(2, in_a_child);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_alone_make_a_communicator),
        CASE_ALONE(one_is_made_of_another_and_outlives_it, 4),
        cmocka_unit_test(test_a_list_of_one_is_a_rank_alone),
        cmocka_unit_test(test_wrong_lists_are_refused),
        cmocka_unit_test(test_who_is_missing_is_named_and_the_parent_lives),
        CASE(threads_make_several_at_once, 3),
        CASE(two_threads_with_one_list_and_tag, 2),
        CASE_ALONE(some_are_left_out_and_the_parent_lives, 5),
        CASE_ALONE(some_are_left_out_beside_an_abort, 5),
        CASE_ALONE(none_are_left_out_of_one_that_has_failed, 3),
        CASE_ALONE(leaves_beside_an_abort, 3),
        cmocka_unit_test(test_a_rank_that_remains_is_missing_beside_an_abort),
        CASE_ALONE(a_parent_may_still_be_starting, 3),
        cmocka_unit_test(test_a_forked_child_is_refused),
    };
    if (argc != 2)
        return 2;
    cases_begin(argc, argv);
    setenv("RING_TIMEOUT", "60", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
