/* SPDX-License-Identifier: Apache-2.0
 * Promises of calls beside right sums: handles, order, errors, deadlines, counters.
 * Usage: test_coll_calls TRANSPORT */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

/* ---- Handles ------------------------------------------------------------------------------ */

static int ring_test_finishes_without_waiting(ring_comm *comm, int rank, int ranks,
                                              harness_board *board)
{
    ring_work *work;
    int64_t x = rank + 1;
    int done = 0;
    ring_call call = RING_CALL_INIT;
    call.work = &work;
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT64, RING_PROD, comm, &call));
    const double end = harness_now() + 20;
    while (!done && harness_now() < end)
        EXPECT_OK(ring_test(&work, &done));
    EXPECT(done && x == 6, "done %d, x %lld", done, (long long)x);
    return 0;
}

/* ---- Point to point -------------------------------------------------------------------------- */

static int send_and_recv_go_round_a_ring(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    enum { COUNT = 300000 };
    double *out = malloc(COUNT * sizeof *out), *in = malloc(COUNT * sizeof *in);
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT; i++)
            out[i] = rank * 1e6 + (double)i + round;
        ring_work *sending;
        ring_call call = RING_CALL_INIT;
        call.work = &sending;
        EXPECT_OK(ring_send(out, COUNT, RING_FLOAT64, next, comm, &call));
        EXPECT_OK(ring_recv(in, COUNT, RING_FLOAT64, before, comm, NULL));
        EXPECT_OK(ring_wait(&sending));
        for (size_t i = 0; i < COUNT; i++)
            EXPECT(in[i] == before * 1e6 + (double)i + round, "element %zu", i);
    }
    free(in);
    free(out);
    return 0;
}

/* A receive that is posted late holds up neither the sender's collectives nor another pair. */
static int pending_receive_does_not_hold_up_collectives(ring_comm *comm, int rank, int ranks,
                                                        harness_board *board)
{
    ring_work *pending;
    float x = 1, y = 0, z = 42;
    ring_call call = RING_CALL_INIT;
    call.work = &pending;
    if (rank == 0)
        EXPECT_OK(ring_recv(&y, 1, RING_FLOAT32, 1, comm, &call));
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, NULL));
    EXPECT(x == (float)ranks, "sum %g", (double)x);
    if (rank == 1)
        EXPECT_OK(ring_send(&z, 1, RING_FLOAT32, 0, comm, NULL));
    if (rank == 0) {
        EXPECT_OK(ring_wait(&pending));
        EXPECT(y == 42, "received %g", (double)y);
    }
    return 0;
}

/* ---- Counters: the ring's theory ----------------------------------------------- */

static int ring_bytes(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    const size_t count = 840 * 100; /* divides by 1 to 8 */
    ring_comm_info before = {.size = sizeof before}, after = {.size = sizeof after};
    float *x = calloc(count, sizeof *x);
    EXPECT_OK(ring_comm_get_info(comm, &before));
    EXPECT_OK(ring_all_reduce(x, x, count, RING_FLOAT32, RING_SUM, comm, NULL));
    EXPECT_OK(ring_comm_get_info(comm, &after));
    const uint64_t n = (uint64_t)ranks, vector = count * sizeof *x;
    EXPECT(strcmp(after.algorithm, "ring") == 0, "algorithm %s", after.algorithm);
    EXPECT(after.bytes_sent - before.bytes_sent == 2 * (n - 1) * (vector / n), "%llu bytes",
           (unsigned long long)(after.bytes_sent - before.bytes_sent));
    EXPECT(after.messages_sent - before.messages_sent == 2 * (n - 1), "%llu transfers",
           (unsigned long long)(after.messages_sent - before.messages_sent));
    free(x);
    return 0;
}

static void test_ring_moves_exactly_the_bytes_of_theory(void **state)
{
    setenv("RING_ALGO", "ring", 1);
    for (int ranks = 1; ranks <= 8; ranks++)
        run_joined(ranks, ring_bytes);
    unsetenv("RING_ALGO");
}

/* ---- Errors -------------------------------------------------------------------- */

static int wrong_arguments_are_refused_before_anything_is_sent(int rank, int ranks,
                                                               harness_board *board, void *arg)
{
    ring_comm *comm;
    float x[4] = {0};
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(ring_all_reduce(NULL, x, 1, RING_FLOAT32, RING_SUM, comm, NULL) == RING_ERR_ARGUMENT,
           "NULL src");
    EXPECT(ring_all_reduce(x, x, 1, (ring_dtype)99, RING_SUM, comm, NULL) == RING_ERR_ARGUMENT,
           "dtype");
    EXPECT(ring_all_reduce(x, x, 1, RING_FLOAT32, (ring_op)99, comm, NULL) == RING_ERR_ARGUMENT,
           "op");
    EXPECT(ring_all_reduce(x, x + 1, 2, RING_FLOAT32, RING_SUM, comm, NULL) == RING_ERR_ARGUMENT,
           "overlap");
    EXPECT(strstr(ring_last_error(NULL), "overlap") != NULL, "%s", ring_last_error(NULL));
    EXPECT(ring_all_reduce(x, x, SIZE_MAX / 2, RING_FLOAT32, RING_SUM, comm, NULL) ==
               RING_ERR_ARGUMENT,
           "count");
    EXPECT(ring_broadcast(x, x, 1, RING_FLOAT32, ranks, comm, NULL) == RING_ERR_ARGUMENT, "root");
    EXPECT(ring_send(x, 1, RING_FLOAT32, ranks, comm, NULL) == RING_ERR_ARGUMENT, "peer");
    EXPECT(ring_all_to_all(x, x, 1, RING_FLOAT32, comm, NULL) == RING_ERR_ARGUMENT, "in place");
    EXPECT(ring_gather(x, x, 1, RING_FLOAT32, -1, comm, NULL) == RING_ERR_ARGUMENT, "root");
    EXPECT(ring_scatter(x, x + 1, SIZE_MAX / 4, RING_FLOAT32, 0, comm, NULL) == RING_ERR_ARGUMENT,
           "count");
    EXPECT(ring_scan(x, x, 1, RING_FLOAT32, RING_AVG, comm, NULL) == RING_ERR_ARGUMENT, "average");
    EXPECT(strstr(ring_last_error(NULL), "use sum, then divide") != NULL, "%s",
           ring_last_error(NULL));
    ring_call call = RING_CALL_INIT;
    call.timeout = -2;
    EXPECT_REFUSED(ring_barrier(comm, &call), "ring_call.timeout is -2");
    call.timeout = (double)NAN;
    EXPECT_REFUSED(ring_barrier(comm, &call), "RING_TIMEOUT_NONE");
    call.timeout = 0;
    call.stream = x;
    EXPECT(ring_barrier(comm, &call) == RING_ERR_UNSUPPORTED, "stream");
    EXPECT_OK(ring_comm_status(comm)); /* nothing was sent: the communicator lives */
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_comm_destroy(comm);
    return 0;
}

/* Of a short call and of one that is not eager. An exscan writes nothing on rank 0. */
static int prefixes(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    static const size_t counts[] = {3, 40000};
    for (int c = 0; c < 2; c++) {
        const size_t count = counts[c];
        int32_t *src = malloc(count * sizeof *src), *dst = malloc(count * sizeof *dst);
        for (size_t i = 0; i < count; i++)
            src[i] = (rank + 1) * 1000 + (int32_t)(i % 7), dst[i] = -1;
        EXPECT_OK(ring_exscan(src, rank > 0 ? dst : NULL, count, RING_INT32, RING_SUM, comm, NULL));
        for (size_t i = 0; i < count; i++) {
            const int32_t before = rank * (rank + 1) / 2 * 1000 + rank * (int32_t)(i % 7);
            EXPECT(dst[i] == (rank > 0 ? before : -1), "exscan gave %d at %zu", dst[i], i);
        }
        EXPECT_OK(ring_scan(src, src, count, RING_INT32, RING_SUM, comm, NULL));
        for (size_t i = 0; i < count; i++) {
            const int32_t all = (rank + 1) * (rank + 2) / 2 * 1000;
            EXPECT(src[i] == all + (rank + 1) * (int32_t)(i % 7), "scan gave %d at %zu", src[i], i);
        }
        free(src);
        free(dst);
    }
    return 0;
}

static void test_prefixes(void **state)
{
    for (int ranks = 1; ranks <= 5; ranks++)
        run_joined(ranks, prefixes);
}

/* The buffers that only the root has may be NULL elsewhere. */
static int only_the_root_needs_the_blocks_of_all(ring_comm *comm, int rank, int ranks,
                                                 harness_board *board)
{
    enum { COUNT = 70000 }; /* too long to be eager */
    int32_t *own = malloc(COUNT * sizeof *own), *all = NULL;
    const int root = ranks - 1;
    if (rank == root)
        all = malloc(COUNT * sizeof *all * (size_t)ranks);
    for (int32_t i = 0; i < COUNT; i++)
        own[i] = rank * COUNT + i;
    EXPECT_OK(ring_gather(own, all, COUNT, RING_INT32, root, comm, NULL));
    for (int32_t i = 0; rank == root && i < COUNT * ranks; i++) {
        EXPECT(all[i] == i, "gathered %d at %d", all[i], i);
        all[i] = -i;
    }
    EXPECT_OK(ring_scatter(all, own, COUNT, RING_INT32, root, comm, NULL));
    for (int32_t i = 0; i < COUNT; i++)
        EXPECT(own[i] == -(rank * COUNT + i), "scattered %d at %d", own[i], i);
    free(all);
    free(own);
    return 0;
}

static int different_counts(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    float x[64] = {0};
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const size_t count = rank == 1 ? 7 : 5;
    const double started = harness_now();
    EXPECT(ring_all_reduce(x, x, count, RING_FLOAT32, RING_SUM, comm, NULL) == RING_ERR_MISMATCH,
           "%s", ring_last_error(comm));
    EXPECT(harness_is_prompt(started), "took %.1f s", harness_now() - started);
    const char *text = ring_last_error(comm);
    EXPECT(strstr(text, "count 5") != NULL && strstr(text, "count 7") != NULL, "%s", text);
    EXPECT(ring_barrier(comm, NULL) == RING_ERR_MISMATCH, "later calls return the first error");
    ring_comm_destroy(comm);
    return 0;
}

static int different_ops(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    float x[64] = {0};
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(ring_all_reduce(x, x, 64, RING_FLOAT32, rank == 0 ? RING_MAX : RING_SUM, comm, NULL) ==
               RING_ERR_MISMATCH,
           "%s", ring_last_error(comm));
    const char *text = ring_last_error(comm);
    EXPECT(strstr(text, "max") != NULL && strstr(text, "sum") != NULL, "%s", text);
    ring_comm_destroy(comm);
    return 0;
}

/* Two roots that each wait for the other: no message ever meets a receive. */
static int different_roots(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    float x[64] = {0};
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(ring_reduce(x, x, 64, RING_FLOAT32, RING_SUM, rank % 2, comm, NULL) == RING_ERR_MISMATCH,
           "%s", ring_last_error(comm));
    const char *text = ring_last_error(comm);
    EXPECT(strstr(text, "root 0") != NULL && strstr(text, "root 1") != NULL, "%s", text);
    ring_comm_destroy(comm);
    return 0;
}

static int different_blocks(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    float x[16] = {0}, y[16];
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(ring_all_to_all(x, y, rank == 1 ? 3 : 2, RING_FLOAT32, comm, NULL) == RING_ERR_MISMATCH,
           "%s", ring_last_error(comm));
    const char *text = ring_last_error(comm);
    EXPECT(strstr(text, "all_to_all") != NULL && strstr(text, "count 3") != NULL, "%s", text);
    ring_comm_destroy(comm);
    return 0;
}

static void test_different_calls_are_shown_on_all_ranks(void **state)
{
    run(2, different_counts);
    run(4, different_counts);
    run(3, different_ops);
    run(2, different_roots);
    run(3, different_blocks);
}

static int missing_rank_is_a_timeout(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    float x = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank == 1) { /* never calls, but lives */
        while (ring_comm_status(comm) == RING_OK)
            usleep(1000);
        EXPECT(ring_comm_status(comm) == RING_ERR_TIMEOUT, "status %d", ring_comm_status(comm));
    } else {
        ring_call call = RING_CALL_INIT;
        call.timeout = 0.3;
        const double started = harness_now();
        EXPECT(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, &call) == RING_ERR_TIMEOUT,
               "%s", ring_last_error(comm));
        EXPECT(harness_is_prompt(started), "took %.1f s", harness_now() - started);
        EXPECT(strstr(ring_last_error(comm), "all_reduce") != NULL, "%s", ring_last_error(comm));
    }
    ring_comm_destroy(comm);
    return 0;
}

/* RING_TIMEOUT is over when rank 0 makes the call. */
static int late_by(int rank, int ranks, harness_board *board, void *timeout)
{
    float x = 1;
    ring_comm *comm;
    ring_call call = RING_CALL_INIT;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    call.timeout = *(double *)timeout;
    usleep(rank == 0 ? 800000 : 0);
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, &call));
    EXPECT(x == (float)ranks, "sum %g", (double)x);
    ring_comm_destroy(comm);
    return 0;
}

/* A rank that ends ends the calls that have no deadline. */
static int lost_without_deadline(int rank, int ranks, harness_board *board, void *timeout)
{
    float x = 1;
    ring_comm *comm;
    ring_call call = RING_CALL_INIT;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    call.timeout = *(double *)timeout;
    const double since = harness_now();
    if (rank == 0)
        _exit(0);
    EXPECT(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, &call) == RING_ERR_PEER, "%s",
           ring_last_error(comm));
    EXPECT(harness_is_prompt(since), "took %.1f s", harness_now() - since);
    ring_comm_destroy(comm);
    return 0;
}

static void test_calls_may_have_no_deadline(void **state)
{
    static const struct {
        const char *timeout, *init;
        double of_call;
    } cases[] = {{"0.3", "60", RING_TIMEOUT_NONE},
                 {"0.3", "none", (double)INFINITY},
                 {"none", "none", 0},
                 {"none", "60", RING_TIMEOUT_NONE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double of_call = cases[i].of_call;
        setenv("RING_TIMEOUT", cases[i].timeout, 1);
        setenv("RING_INIT_TIMEOUT", cases[i].init, 1);
        assert_int_equal(harness_run(cases_kind(), 3, late_by, &of_call, NULL), 0);
        if (cases_kind() == HARNESS_PROCESSES)
            assert_int_equal(harness_run(HARNESS_PROCESSES, 3, lost_without_deadline, &of_call,
                                         NULL),
                             0);
    }
    unsetenv("RING_TIMEOUT");
    unsetenv("RING_INIT_TIMEOUT");
}

static void *abort_soon(void *comm)
{
    usleep(50000);
    ring_comm_abort(comm, "the test says so");
    return NULL;
}

static int abort_ends_waiting_calls_everywhere(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    pthread_t thread;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank == 1) {
        pthread_create(&thread, NULL, abort_soon, comm);
        pthread_join(thread, NULL);
    } else {
        EXPECT(ring_barrier(comm, NULL) == RING_ERR_ABORTED, "%s", ring_last_error(comm));
        EXPECT(strstr(ring_last_error(comm), "the test says so") != NULL, "%s",
               ring_last_error(comm));
    }
    EXPECT(ring_barrier(comm, NULL) == RING_ERR_ABORTED, "%s", ring_last_error(comm));
    ring_comm_destroy(comm);
    return 0;
}

/* ---- Leaving ------------------------------------------------------------------- */

static int leaving_with_an_unfinished_call_ends_it_everywhere(int rank, int ranks,
                                                              harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_work *pending;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    float *x = calloc(100000, sizeof *x);
    if (rank == 0) { /* starts a call, does not wait for it, and takes its buffer back */
        ring_call call = RING_CALL_INIT;
        call.work = &pending;
        EXPECT_OK(ring_all_reduce(x, x, 100000, RING_FLOAT32, RING_SUM, comm, &call));
        ring_comm_destroy(comm);
        free(x);
        EXPECT(ring_wait(&pending) == RING_ERR_ABORTED, "%s", ring_last_error(NULL));
        return 0;
    }
    usleep(300000);
    EXPECT(ring_all_reduce(x, x, 100000, RING_FLOAT32, RING_SUM, comm, NULL) == RING_ERR_ABORTED,
           "%s", ring_last_error(comm));
    EXPECT(strstr(ring_last_error(comm), "rank 0") != NULL, "%s", ring_last_error(comm));
    ring_comm_destroy(comm);
    free(x);
    return 0;
}

/* Rank 0 has sent all it owes and leaves; the others stall on rank 2 for longer than it takes to
 * compare calls, and still finish. */
static int leaving_in_order_disturbs_nobody(ring_comm *comm, int rank, int ranks,
                                            harness_board *board)
{
    enum { COUNT = 400000 };
    float *x = malloc(COUNT * sizeof *x);
    for (size_t i = 0; i < COUNT; i++)
        x[i] = (float)rank;
    if (rank == 2)
        usleep(1200000);
    EXPECT_OK(ring_reduce(x, x, COUNT, RING_FLOAT32, RING_SUM, 1, comm, NULL));
    for (size_t i = 0; i < COUNT && rank == 1; i++)
        EXPECT(x[i] == 3, "element %zu: %g", i, (double)x[i]);
    free(x);
    return 0;
}

/* ---- Bounded links ------------------------------------------------------------- */

static int large_reduce(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    enum { COUNT = 8 << 20 }; /* chunks far longer than what a link takes ahead */
    uint8_t *x = calloc(COUNT, 1);
    memset(x, rank + 1, COUNT);
    EXPECT_OK(ring_reduce(x, x, COUNT, RING_UINT8, RING_SUM, 1, comm, NULL));
    EXPECT(rank != 1 || (x[0] == 10 && x[COUNT - 1] == 10), "%d and %d", x[0], x[COUNT - 1]);
    memset(x, rank + 1, COUNT);
    EXPECT_OK(ring_reduce_scatter(x, x + (size_t)rank * (COUNT / 4), COUNT / 4, RING_UINT8,
                                  RING_SUM, comm, NULL));
    EXPECT(x[(size_t)rank * (COUNT / 4)] == 10, "%d", x[(size_t)rank * (COUNT / 4)]);
    free(x);
    return 0;
}

static void test_long_chunks_do_not_block_bounded_links(void **state)
{
    static const char *const algorithms[] = {"ring", "direct", "chain"};
    for (int i = 0; i < 3; i++) {
        setenv("RING_ALGO", algorithms[i], 1);
        setenv("RING_TIMEOUT", "30", 1);
        run_joined(4, large_reduce);
    }
    unsetenv("RING_ALGO");
    unsetenv("RING_TIMEOUT");
}

/* ---- A busy peer is not a dead one --------------------------------------------- */

static int late_peer(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    float x = 1;
    const double busy_until = harness_now() + (rank == 0 ? 2.5 : 0);
    while (harness_now() < busy_until)
        continue;
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, NULL));
    EXPECT(x == (float)ranks, "sum %g", (double)x);
    return 0;
}

static void test_busy_peer_is_waited_for(void **state)
{
    setenv("RING_PEER_TIMEOUT", "1", 1);
    run_joined(2, late_peer);
    unsetenv("RING_PEER_TIMEOUT");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(ring_test_finishes_without_waiting, 3),
        CASE(send_and_recv_go_round_a_ring, 2, 5),
        CASE(pending_receive_does_not_hold_up_collectives, 3),
        cmocka_unit_test(test_ring_moves_exactly_the_bytes_of_theory),
        cmocka_unit_test(test_prefixes),
        CASE(only_the_root_needs_the_blocks_of_all, 1, 3),
        CASE_ALONE(wrong_arguments_are_refused_before_anything_is_sent, 2),
        cmocka_unit_test(test_different_calls_are_shown_on_all_ranks),
        CASE_ALONE(missing_rank_is_a_timeout, 2),
        cmocka_unit_test(test_calls_may_have_no_deadline),
        CASE_ALONE(abort_ends_waiting_calls_everywhere, 3),
        CASE_ALONE(leaving_with_an_unfinished_call_ends_it_everywhere, 2),
        CASE(leaving_in_order_disturbs_nobody, 3),
        cmocka_unit_test(test_long_chunks_do_not_block_bounded_links),
        cmocka_unit_test(test_busy_peer_is_waited_for),
    };
    cases_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
