/* SPDX-License-Identifier: Apache-2.0
 * How long calls may wait, and what ends the waiting: deadlines beside other traffic, ranks that
 * disagree about the root, links that break where a sum is relayed, a communicator that goes.
 * Usage: test_coll_waiting TRANSPORT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

/* Until every rank is here: a communicator that has failed cannot tell. */
static void meet(harness_board *board, int ranks)
{
    for (board->counters[0]++; board->counters[0] < ranks;)
        usleep(1000);
}

/* ---- Deadlines ---------------------------------------------------------------------------- */

typedef struct lonely_recv {
    ring_comm *comm;
    ring_status status;
    double seconds;
} lonely_recv;

static void *receive_from_nobody(void *arg)
{
    lonely_recv *self = arg;
    float x;
    ring_call call = RING_CALL_INIT;
    call.timeout = 0.5;
    const double began = harness_now();
    self->status = ring_recv(&x, 1, RING_FLOAT32, 1, self->comm, &call);
    self->seconds = harness_now() - began;
    return NULL;
}

/* All-reduces until one fails, on every rank, or it takes too long. */
static ring_status reduce_for_a_while(ring_comm *comm)
{
    static const double most = HARNESS_PROMPT;
    const double end = harness_now() + most;
    float over = 0;
    ring_status status = RING_OK;
    while (status == RING_OK && over == 0) {
        over = harness_now() > end;
        status = ring_all_reduce(&over, &over, 1, RING_FLOAT32, RING_MAX, comm, NULL);
    }
    return status;
}

static int a_deadline_ends_a_call_while_others_go_on(int rank, int ranks, harness_board *board,
                                                     void *arg)
{
    lonely_recv lonely = {0};
    pthread_t thread;
    EXPECT_OK(harness_join(rank, ranks, board, &lonely.comm));
    if (rank == 0)
        pthread_create(&thread, NULL, receive_from_nobody, &lonely);
    const ring_status status = reduce_for_a_while(lonely.comm);
    EXPECT(status == RING_ERR_TIMEOUT, "%s", ring_status_string(status));
    if (rank == 0) {
        pthread_join(thread, NULL);
        EXPECT(lonely.status == RING_ERR_TIMEOUT && lonely.seconds < HARNESS_PROMPT,
               "%s after %.2f s", ring_status_string(lonely.status), lonely.seconds);
    }
    ring_comm_destroy(lonely.comm);
    return 0;
}

/* The first call's deadline counts while the caller waits for the second. */
static int each_call_has_its_own_deadline(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    float x[2] = {0};
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank == 0) {
        ring_work *works[2];
        ring_call call = RING_CALL_INIT;
        call.timeout = 0.3;
        call.work = &works[0];
        EXPECT_OK(ring_recv(&x[0], 1, RING_FLOAT32, 1, comm, &call));
        call.timeout = 20;
        call.work = &works[1];
        EXPECT_OK(ring_recv(&x[1], 1, RING_FLOAT32, 1, comm, &call));
        const double began = harness_now();
        EXPECT(ring_wait(&works[1]) == RING_ERR_TIMEOUT, "%s", ring_last_error(comm));
        EXPECT(harness_is_prompt(began), "after %.2f s", harness_now() - began);
        EXPECT(ring_wait(&works[0]) == RING_ERR_TIMEOUT, "%s", ring_last_error(comm));
    } else {
        EXPECT(ring_barrier(comm, NULL) == RING_ERR_TIMEOUT, "%s", ring_last_error(comm));
    }
    ring_comm_destroy(comm);
    return 0;
}

/* A vector that takes far longer than its deadline, with ranks that never pause. */
static int a_deadline_ends_a_call_that_moves(int rank, int ranks, harness_board *board, void *arg)
{
    static const size_t count = (size_t)400 << 20;
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    unsigned char *x = calloc(count, 1);
    ring_call call = RING_CALL_INIT;
    call.timeout = 0.02;
    EXPECT_OK(ring_barrier(comm, NULL));
    const double began = harness_now();
    const ring_status status = ring_all_reduce(x, x, count, RING_UINT8, RING_SUM, comm, &call);
    const double seconds = harness_now() - began;
    EXPECT(status == RING_ERR_TIMEOUT, "%s after %.3f s", ring_status_string(status), seconds);
    EXPECT(harness_is_prompt(began), "after %.3f s", seconds);
    ring_comm_destroy(comm);
    meet(board, ranks); /* a peer may be in the middle of a pass over x */
    free(x);
    return 0;
}

/* ---- Polling ------------------------------------------------------------------------------- */

/* Ranks that only poll learn of different calls like those that wait. */
static int pollers_learn_of_different_calls(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_work *work;
    float x[8] = {0};
    int done = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    ring_call call = RING_CALL_INIT;
    call.work = &work;
    EXPECT_OK(ring_reduce(x, x, 8, RING_FLOAT32, RING_SUM, rank, comm, &call));
    ring_status status = RING_OK;
    for (const double end = harness_now() + 20; !done && harness_now() < end;)
        status = ring_test(&work, &done);
    EXPECT(status == RING_ERR_MISMATCH, "%s: %s", ring_status_string(status),
           ring_last_error(comm));
    ring_comm_destroy(comm);
    return 0;
}

/* ---- Roots ---------------------------------------------------------------------------------- */

typedef ring_status (*rooted_call)(float *x, int root, ring_comm *comm);

static ring_status broadcast_from(float *x, int root, ring_comm *comm)
{
    return ring_broadcast(x, x, 4, RING_FLOAT32, root, comm, NULL);
}

static ring_status reduce_to(float *x, int root, ring_comm *comm)
{
    return ring_reduce(x, x, 4, RING_FLOAT32, RING_SUM, root, comm, NULL);
}

/* Every rank names a root such that all send: nobody receives what would tell. */
static int disagree(int rank, int ranks, harness_board *board, rooted_call call, int root)
{
    ring_comm *comm;
    float x[4] = {(float)rank};
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    ring_status status = call(x, root, comm);
    if (status == RING_OK) /* a rank may be through before the others have seen it */
        status = ring_barrier(comm, NULL);
    EXPECT(status == RING_ERR_MISMATCH, "%s: %s", ring_status_string(status),
           ring_last_error(comm));
    const char *text = ring_last_error(comm); /* of four, one may be in the barrier already */
    EXPECT(ranks > 2 || (strstr(text, "root 0") && strstr(text, "root 1")), "%s", text);
    ring_comm_destroy(comm);
    return 0;
}

static int all_are_roots(int rank, int ranks, harness_board *board, void *arg)
{
    return disagree(rank, ranks, board, broadcast_from, rank % 2);
}

static int none_is_root(int rank, int ranks, harness_board *board, void *arg)
{
    return disagree(rank, ranks, board, reduce_to, 1 - rank % 2);
}

static void test_ranks_that_disagree_about_the_root_learn_it(void **state)
{
    run(2, all_are_roots);
    run(2, none_is_root);
    run(4, all_are_roots);
}

/* ---- Many calls under way ------------------------------------------------------ */

/* Thousands of small calls, as a trainer that reduces each parameter by a call of its own. */
static int thousands_of_calls_under_way(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    enum { WORKS = 4000 };
    ring_work **works = malloc(WORKS * sizeof *works);
    int32_t *x = malloc(WORKS * sizeof *x);
    const double began = harness_now();
    for (int w = 0; w < WORKS; w++) {
        ring_call call = RING_CALL_INIT;
        call.work = &works[w];
        x[w] = rank + w;
        EXPECT_OK(ring_all_reduce(&x[w], &x[w], 1, RING_INT32, RING_SUM, comm, &call));
    }
    for (int w = WORKS - 1; w >= 0; w--) {
        EXPECT_OK(ring_wait(&works[w]));
        EXPECT(x[w] == 2 * w + 1, "call %d: %d", w, (int)x[w]);
    }
    const double seconds = harness_now() - began; /* 40 s when each call looked at all before it */
    EXPECT(harness_is_prompt(began), "%d calls took %.1f s", WORKS, seconds);
    free(x);
    free(works);
    return 0;
}

/* ---- Handles -------------------------------------------------------------------------------- */

static int a_handle_may_outlive_its_communicator(int rank, int ranks, harness_board *board,
                                                 void *arg)
{
    ring_comm *comm;
    ring_work *finished, *unfinished;
    float x = 1, y;
    int done = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    ring_call call = RING_CALL_INIT;
    call.work = &finished;
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, &call));
    EXPECT_OK(ring_comm_flush(comm, INFINITY)); /* a barrier may end before an earlier call */
    call.work = &unfinished;
    EXPECT_OK(ring_recv(&y, 1, RING_FLOAT32, (rank + 1) % ranks, comm, &call));
    meet(board, ranks); /* who destroys first aborts all */
    ring_comm_destroy(comm);
    EXPECT_OK(ring_wait(&finished));
    EXPECT(x == (float)ranks, "%g", (double)x);
    const ring_status status = ring_test(&unfinished, &done);
    EXPECT(done && status == RING_ERR_ABORTED, "%s", ring_status_string(status));
    EXPECT(strstr(ring_last_error(NULL), "destroyed") != NULL, "%s", ring_last_error(NULL));
    return 0;
}

/* ---- Forks ---------------------------------------------------------------------------------- */

/* @return true if the child's calls failed, and the one that cannot did no harm. */
static bool child_is_refused(ring_comm *comm)
{
    float x = 0;
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
        const bool refused = ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, NULL) ==
                                 RING_ERR_USAGE &&
                             ring_comm_abort(comm, "from a child") == RING_ERR_USAGE;
        ring_comm_destroy(comm);
        _exit(!refused);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static int fork_in_between(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    EXPECT(child_is_refused(comm), "%s", "a child used its parent's communicator");
    for (int i = 0; i < 3; i++)
        EXPECT_OK(ring_barrier(comm, NULL));
    return 0;
}

static void test_forked_children_leave_the_communicator_alone(void **state)
{
    if (strcmp(cases_transport(), "loop") == 0)
        skip_because("ranks are threads, of which a forked child has only one");
    run_joined(2, fork_in_between);
}

/* ---- A link that breaks under a relay ------------------------------------------ */

static _Atomic int memory_is_short;

/* Stand before libc's: links commit their lines by these. */
__attribute__((visibility("default"))) int madvise(void *at, size_t bytes, int advice)
{
    int (*real)(void *, size_t, int);
    *(void **)&real = dlsym(RTLD_NEXT, "madvise");
#if defined(MADV_POPULATE_WRITE)
    if (memory_is_short && advice == MADV_POPULATE_WRITE) {
        errno = EFAULT;
        return -1;
    }
#endif
    return real(at, bytes, advice);
}

__attribute__((visibility("default"))) int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    int (*real)(int, int, off_t, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, "fallocate");
    if (!memory_is_short)
        return real(fd, mode, offset, bytes);
    errno = ENOMEM;
    return -1;
}

static int relay_into_a_broken_link(int rank, int ranks, harness_board *board, void *arg)
{
    enum { COUNT = 100000 }; /* more than a link commits when it opens */
    static float x[COUNT];
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    memory_is_short = rank == 1;
    ring_call call = RING_CALL_INIT;
    call.timeout = 20;
    const double began = harness_now();
    const ring_status status = ring_all_reduce(x, x, COUNT, RING_FLOAT32, RING_SUM, comm, &call);
    EXPECT(status != RING_OK && status != RING_ERR_TIMEOUT && harness_is_prompt(began),
           "%s after %.1f s: %s", ring_status_string(status), harness_now() - began,
           ring_last_error(comm));
    EXPECT(strstr(ring_last_error(comm), "rank 1") != NULL, "%s", ring_last_error(comm));
    ring_comm_destroy(comm);
    return 0;
}

static void test_a_broken_link_ends_a_call_that_relays(void **state)
{
    if (strcmp(cases_transport(), "shm") != 0)
        skip_because("only shm's lines are committed by this process at their first use");
    setenv("RING_ALGO", "ring", 1);
    run(3, relay_into_a_broken_link);
    unsetenv("RING_ALGO");
}

/* ---- Ranks that have left ------------------------------------------------------- */

/* Rank 1 makes one call less, with a link or without one. */
static int call_once_more(int rank, int ranks, harness_board *board, void *arg)
{
    const bool linked = *(const bool *)arg;
    ring_comm *comm;
    int x = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (linked)
        EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, NULL));
    if (rank == 0) {
        const double start = harness_now();
        const ring_status status = ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, NULL);
        EXPECT(status == RING_ERR_PEER, "%s", ring_status_string(status));
        EXPECT(harness_is_prompt(start), "after %g s", harness_now() - start);
        EXPECT(strstr(ring_last_error(comm), "left the communicator while it was needed") != NULL,
               "%s", ring_last_error(comm));
    }
    ring_comm_destroy(comm);
    return 0;
}

static void test_a_call_without_one_that_has_left_ends(void **state)
{
    for (int linked = 0; linked < 2; linked++)
        assert_int_equal(harness_run(cases_kind(), 2, call_once_more, &(bool){linked}, NULL), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE_ALONE(a_deadline_ends_a_call_while_others_go_on, 2),
        CASE_ALONE(each_call_has_its_own_deadline, 2),
        CASE_ALONE(a_deadline_ends_a_call_that_moves, 2),
        CASE_ALONE(pollers_learn_of_different_calls, 2),
        cmocka_unit_test(test_ranks_that_disagree_about_the_root_learn_it),
        CASE(thousands_of_calls_under_way, 2),
        CASE_ALONE(a_handle_may_outlive_its_communicator, 2),
        cmocka_unit_test(test_forked_children_leave_the_communicator_alone),
        cmocka_unit_test(test_a_broken_link_ends_a_call_that_relays),
        cmocka_unit_test(test_a_call_without_one_that_has_left_ends),
    };
    cases_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
