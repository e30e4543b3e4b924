/* SPDX-License-Identifier: Apache-2.0
 * Tests calls on memory that the host cannot load from, in addition to the sweep: between pairs, on
 * a stream that computes, and with failures while the accelerator is working.
 * Usage: test_coll_far TRANSPORT */
#include "coll_sweep.h"
#include "far.h"
#include "nic.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

static unsigned char byte_of(size_t i, int rank)
{
    return (unsigned char)(i * 31 + i / 251 + (size_t)rank * 7);
}

static unsigned char *bytes_new(size_t bytes, int rank)
{
    unsigned char *x = malloc(bytes + 1);
    for (size_t i = 0; x != NULL && i < bytes; i++)
        x[i] = byte_of(i, rank);
    return x;
}

/* ---- Pairs --------------------------------------------------------------------- */

/* From far to far, and between far and plain memory; back and forth. */
static int exchange(int rank, ring_comm *comm, size_t bytes, bool far_here)
{
    unsigned char *host = bytes_new(bytes, rank), *got = calloc(1, bytes + 1);
    unsigned char *memory = far_here ? far_alloc(bytes + 1) : host;
    const int peer = 1 - rank;
    EXPECT(host != NULL && got != NULL, "no memory");
    if (far_here)
        far_write(memory, host, bytes);
    if (rank == 0)
        EXPECT_OK(ring_send(memory, bytes, RING_UINT8, peer, comm, NULL));
    EXPECT_OK(ring_recv(far_here ? memory : got, bytes, RING_UINT8, peer, comm, NULL));
    if (rank == 1) {
        if (far_here)
            far_write(memory, host, bytes);
        EXPECT_OK(ring_send(memory, bytes, RING_UINT8, peer, comm, NULL));
    } else if (far_here) {
        far_read(got, memory, bytes);
    }
    for (size_t i = 0; rank == 0 && i < bytes; i++)
        EXPECT(got[i] == byte_of(i, peer), "byte %zu of %zu: %d", i, bytes, got[i]);
    if (far_here)
        far_free(memory);
    free(host);
    free(got);
    return 0;
}

/* Far to plain memory, far to far, and plain to far, of one rank. */
static int exchange_alone(int rank, ring_comm *comm, size_t bytes)
{
    unsigned char *host = bytes_new(bytes, rank), *got = calloc(1, bytes + 1);
    unsigned char *a = far_alloc(bytes + 1), *b = far_alloc(bytes + 1);
    void *const way[] = {host, a, b, got};
    EXPECT(host != NULL && got != NULL, "no memory");
    for (int i = 0; i < 3; i++) {
        ring_work *sending;
        ring_call call = RING_CALL_INIT;
        call.work = &sending;
        EXPECT_OK(ring_send(way[i], bytes, RING_UINT8, rank, comm, &call));
        EXPECT_OK(ring_recv(way[i + 1], bytes, RING_UINT8, rank, comm, NULL));
        EXPECT_OK(ring_wait(&sending));
    }
    EXPECT(memcmp(host, got, bytes) == 0, "%zu bytes", bytes);
    far_free(a);
    far_free(b);
    free(host);
    free(got);
    return 0;
}

static int pairs(int rank, int ranks, harness_board *board, void *arg)
{
    static const size_t sizes[] = {0, 1, 40, 41, 4093, 65536, 65537, 1000003};
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int mix = 1; mix < 4; mix++) /* which ranks have far memory */
            if (exchange(rank, comm, sizes[i], mix >> rank & 1) != 0)
                return 1;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (exchange_alone(rank, comm, sizes[i]) != 0)
            return 1;
    ring_comm_destroy(comm);
    return 0;
}

static void test_far_memory_is_sent_and_received(void **state)
{
    run(2, pairs);
}

/* Only a part of a buffer is registered: its beginning or its end. */
static int a_buffer_may_be_registered_in_part(ring_comm *comm, int rank, int ranks,
                                              harness_board *board)
{
    enum { BYTES = 4 << 20, EDGE = 1 << 20 };
    for (int round = 0; round < 3; round++) {
        unsigned char *x = bytes_new(BYTES, 0);
        unsigned char *from = x + (round == 1 ? 0 : EDGE);
        EXPECT(x != NULL, "no memory");
        EXPECT_OK(rank == 0 ? ring_mem_register(x, BYTES)
                            : ring_mem_register(from, BYTES - EDGE - (round == 2 ? EDGE : 0)));
        if (rank == 0) {
            EXPECT_OK(ring_send(x, BYTES, RING_UINT8, 1, comm, NULL));
            EXPECT_OK(ring_send(x, 1000, RING_UINT8, 1, comm, NULL));
        } else {
            memset(x, 0, BYTES);
            EXPECT_OK(ring_recv(x, BYTES, RING_UINT8, 0, comm, NULL));
            for (size_t i = 0; i < BYTES; i++)
                EXPECT(x[i] == byte_of(i, 0), "byte %zu of round %d", i, round);
            EXPECT_OK(ring_recv(x, 1000, RING_UINT8, 0, comm, NULL));
        }
        EXPECT_OK(ring_barrier(comm, NULL));
        EXPECT_OK(ring_mem_deregister(rank == 0 ? x : from));
        free(x);
    }
    return 0;
}

static int memory_of_two_accelerators_is_refused(ring_comm *comm, int rank, int ranks,
                                                 harness_board *board)
{
    float *here = far_alloc(8192), *there = far_alloc_elsewhere(8192);
    EXPECT(ring_all_reduce(here, there, 8, RING_FLOAT32, RING_SUM, comm, NULL) ==
               RING_ERR_UNSUPPORTED,
           "%s", ring_last_error(comm));
    EXPECT(strstr(ring_last_error(NULL), "elsewhere") != NULL, "%s", ring_last_error(NULL));
    EXPECT(ring_broadcast(here, here, 1 << 20, RING_FLOAT32, 0, comm, NULL) == RING_ERR_ARGUMENT,
           "%s", ring_last_error(comm));
    EXPECT_OK(ring_all_reduce(there, there, 8, RING_FLOAT32, RING_SUM, comm, NULL));
    EXPECT_OK(ring_barrier(comm, NULL));
    far_free(here);
    far_free(there);
    return 0;
}

/* ---- Memory that nobody registered --------------------------------------------- */

enum { FOUND = 70001 };

/* Sums @p count elements from the @p first one on of an allocation there. */
static int sum_found(int rank, int ranks, ring_comm *comm, float *memory, size_t first)
{
    const size_t count = FOUND - first;
    float *host = malloc(FOUND * sizeof *host);
    EXPECT(host != NULL, "no memory");
    for (size_t i = 0; i < FOUND; i++)
        host[i] = (float)(i % 1000 + (size_t)rank);
    far_write(memory, host, FOUND * sizeof *host);
    EXPECT_OK(
        ring_all_reduce(memory + first, memory + first, count, RING_FLOAT32, RING_SUM, comm, NULL));
    far_read(host, memory, FOUND * sizeof *host);
    for (size_t i = 0; i < FOUND; i++) {
        const size_t mine = i % 1000 + (size_t)rank;
        const size_t all = i % 1000 * (size_t)ranks + (size_t)(ranks * (ranks - 1) / 2);
        EXPECT(host[i] == (float)(i < first ? mine : all), "element %zu: %g", i, (double)host[i]);
    }
    free(host);
    return 0;
}

/* The host's memory where the accelerator's was. */
static int sum_in_its_place(int rank, int ranks, ring_comm *comm, void *at, size_t bytes)
{
    float *x = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                    0);
    EXPECT(x == at, "no memory");
    x[FOUND - 1] = (float)rank;
    EXPECT_OK(ring_all_reduce(x, x, FOUND, RING_FLOAT32, RING_SUM, comm, NULL));
    EXPECT(x[FOUND - 1] == (float)(ranks * (ranks - 1) / 2), "%g", (double)x[FOUND - 1]);
    EXPECT(mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at,
           "not reserved again");
    return 0;
}

static int memory_that_nobody_registered_is_recognised(int rank, int ranks, harness_board *board,
                                                       void *arg)
{
    enum { BYTES = FOUND * sizeof(float), ROUNDS_FOUND = 3 };
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    float *memory = far_alloc_unknown(BYTES, NULL);
    for (int round = 0; round < ROUNDS_FOUND; round++) {
        EXPECT(sum_found(rank, ranks, comm, memory, 0) == 0, "round %d", round);
        EXPECT(sum_found(rank, ranks, comm, memory, 12345) == 0, "round %d", round);
        far_free_unknown(memory);
        EXPECT(sum_in_its_place(rank, ranks, comm, memory, BYTES) == 0, "round %d", round);
        EXPECT(far_alloc_unknown(BYTES - 4096 * (size_t)round, memory) == memory, "elsewhere");
        EXPECT(ring_all_reduce(memory, memory, 2 * BYTES, RING_FLOAT32, RING_SUM, comm, NULL) ==
                   RING_ERR_ARGUMENT,
               "a buffer that ends outside of its allocation");
        far_free_unknown(memory);
        (void)far_alloc_unknown(BYTES, memory);
    }
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_comm_destroy(comm);
    far_free_unknown(memory);
    return 0;
}

/* ---- Streams ------------------------------------------------------------------- */

enum { ROUNDS = 20, COUNT = 30011 };

/* A thread that computes on far memory, in order: it makes a vector, lets a call begin, waits for
 * its end, and checks the result. */
typedef struct stream {
    int rank, ranks;
    ring_event *made[ROUNDS];
    _Atomic int ended;
    float *memory;
    int wrong;
} stream;

static void *compute(void *context)
{
    stream *s = context;
    float *host = malloc(COUNT * sizeof *host);
    for (int round = 0; round < ROUNDS && host != NULL; round++) {
        usleep(round % 4 == 0 ? 5000 : 0);
        for (int i = 0; i < COUNT; i++)
            host[i] = (float)(i % 100 + round + s->rank);
        far_write(s->memory, host, COUNT * sizeof *host);
        ring_event_set(s->made[round], RING_OK);
        while (s->ended <= round)
            usleep(100);
        far_read(host, s->memory, COUNT * sizeof *host);
        for (int i = 0; i < COUNT; i++)
            s->wrong += host[i] !=
                        (float)((i % 100 + round) * s->ranks + s->ranks * (s->ranks - 1) / 2);
    }
    free(host);
    return NULL;
}

static void on_done(void *context, ring_status status)
{
    stream *s = context;
    s->wrong += status != RING_OK;
    s->ended++;
}

/* All calls are made before the first vector is there. */
static int calls_take_their_turn_in_a_stream(ring_comm *comm, int rank, int ranks,
                                             harness_board *board)
{
    stream s = {.rank = rank, .ranks = ranks};
    pthread_t thread;
    s.memory = far_alloc(COUNT * sizeof *s.memory);
    const double began = harness_now();
    for (int round = 0; round < ROUNDS; round++) {
        ring_call call = RING_CALL_INIT;
        EXPECT_OK(ring_event_create(&s.made[round]));
        call.after = s.made[round];
        call.on_done = on_done;
        call.context = &s;
        EXPECT_OK(ring_all_reduce(s.memory, s.memory, COUNT, RING_FLOAT32, RING_SUM, comm, &call));
    }
    EXPECT(s.ended == 0 && harness_is_prompt(began), "the calls waited");
    EXPECT(pthread_create(&thread, NULL, compute, &s) == 0, "no thread");
    pthread_join(thread, NULL);
    EXPECT(s.ended == ROUNDS && s.wrong == 0, "%d ended, %d wrong", s.ended, s.wrong);
    EXPECT_OK(ring_barrier(comm, NULL));
    for (int round = 0; round < ROUNDS; round++)
        ring_event_destroy(s.made[round]);
    far_free(s.memory);
    return 0;
}

/* ---- Ends ---------------------------------------------------------------------- */

/* Once a call has ended its buffers are the caller's: nothing is written there any more. */
static int aborted(int rank, int ranks, harness_board *board, void *arg)
{
    enum { BYTES = 4 << 20 };
    const int round = *(const int *)arg;
    const bool is_far = round % 2 == 0;
    ring_comm *comm;
    ring_work *work;
    ring_call call = RING_CALL_INIT;
    unsigned char *seen = malloc(BYTES);
    EXPECT(seen != NULL, "no memory");
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const sweep_memory memory = is_far ? SWEEP_FAR : SWEEP_REGISTERED;
    guarded src = guarded_new(BYTES, false, memory), dst = guarded_new(BYTES, false, memory);
    memset(src.view, 1, BYTES);
    memset(dst.view, 0, BYTES);
    guarded_push(&src);
    guarded_push(&dst);
    call.work = &work;
    if (is_far)
        EXPECT_OK(ring_all_reduce(src.at, dst.at, BYTES, RING_UINT8, RING_SUM, comm, &call));
    else
        EXPECT_OK(ring_broadcast(src.at, dst.at, BYTES, RING_UINT8, 0, comm, &call));
    for (board->counters[0]++; board->counters[0] < ranks;)
        usleep(100);
    if (rank == 0) {
        (void)ring_wait_for(&work, 0.015 * round);
        EXPECT_OK(ring_comm_abort(comm, "to see what is still written"));
    }
    const ring_status status = ring_wait(&work);
    EXPECT(status == RING_ERR_ABORTED || status == RING_OK, "%s", ring_status_string(status));
    guarded_pull(&dst);
    memcpy(seen, dst.view, BYTES);
    usleep(20000);
    guarded_pull(&dst);
    EXPECT(memcmp(seen, dst.view, BYTES) == 0, "written after the end");
    ring_comm_destroy(comm);
    guarded_free(&src);
    guarded_free(&dst);
    free(seen);
    return 0;
}

static void test_nothing_is_written_after_the_end(void **state)
{
    setenv("RING_ALGO", "direct", 1);
    far_delay(0.003);
    nic_delay(0.02);
    for (int round = 0; round < 16; round++)
        assert_int_equal(harness_run(cases_kind(), 2, aborted, &round, NULL), 0);
    far_delay(0);
    nic_delay(0);
    unsetenv("RING_ALGO");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_far_memory_is_sent_and_received),
        CASE(a_buffer_may_be_registered_in_part, 2),
        CASE(memory_of_two_accelerators_is_refused, 2),
        CASE_ALONE(memory_that_nobody_registered_is_recognised, 1, 3),
        CASE(calls_take_their_turn_in_a_stream, 1, 2, 3),
        cmocka_unit_test(test_nothing_is_written_after_the_end),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: %s TRANSPORT\n", argv[0]);
        return 2;
    }
    cases_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
