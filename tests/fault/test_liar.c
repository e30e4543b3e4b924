/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank sends frames with false headers: wrong calls, signatures, message numbers, counts,
 * lengths, references. The others get right values or an error with a text, in time, and access no
 * memory out of bounds (this also runs with the sanitizers). It does not run over loop, where the
 * liar is a thread of the same process. RING_TEST_LIES sets the number of runs (20), RING_TEST_SEED
 * their seed. Usage:
 * test_fault_liar TRANSPORT */
#include "draw.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

enum { RANKS = 3, LIAR = 1, LARGEST = 100000, ROUNDS = 4 };
#define TIMEOUT 2.0
#define LATEST (TIMEOUT + HARNESS_PROMPT)

typedef struct outcome {
    ring_status status;
    double seconds;
    char text[512];
} outcome;

static const char *transport_name;

/* ---- A rank ------------------------------------------------------------------------ */

static ring_status collectives(ring_comm *comm, int rank, float *buffer, size_t count)
{
    const size_t part = count / RANKS;
    ring_status status = ring_all_reduce(buffer, buffer, count, RING_FLOAT32, RING_SUM, comm, NULL);
    if (status == RING_OK)
        status = ring_reduce_scatter(buffer, buffer + (size_t)rank * part, part, RING_FLOAT32,
                                     RING_MAX, comm, NULL);
    if (status == RING_OK)
        status = ring_all_gather(buffer + (size_t)rank * part, buffer, part, RING_FLOAT32, comm,
                                 NULL);
    if (status == RING_OK)
        status = ring_broadcast(buffer, buffer, count, RING_FLOAT32, LIAR, comm, NULL);
    if (status == RING_OK)
        status = ring_reduce(buffer, buffer, count, RING_FLOAT32, RING_SUM, 0, comm, NULL);
    return status == RING_OK ? ring_barrier(comm, NULL) : status;
}

static ring_status work(ring_comm *comm, int rank, float *buffer)
{
    static const size_t counts[] = {3, 240, 9000, LARGEST / RANKS * RANKS};
    ring_status status = RING_OK;
    memset(buffer, 0, LARGEST * sizeof *buffer);
    for (int i = 0; i < ROUNDS && status == RING_OK; i++)
        status = collectives(comm, rank, buffer, counts[i]);
    return status;
}

/* Buffers that peers reach, and such as they do not. */
static ring_status work_in_both(ring_comm *comm, int rank)
{
    static float plain[LARGEST];
    void *shared;
    ring_status status = ring_mem_alloc(&shared, sizeof plain);
    if (status == RING_OK)
        status = work(comm, rank, shared);
    return status == RING_OK ? work(comm, rank, plain) : status;
}

static int take_part(int rank, int ranks, harness_board *board, void *arg)
{
    outcome *mine = &((outcome *)(void *)board->data)[rank];
    const double start = harness_now();
    ring_comm *comm = NULL;
    char spec[64];
    snprintf(spec, sizeof spec, "seed=%llu,lie=0.03", *(unsigned long long *)arg);
    if (rank == LIAR)
        setenv("RING_FAULT", spec, 1);
    mine->status = harness_join(rank, ranks, board, &comm);
    if (mine->status == RING_OK)
        mine->status = work_in_both(comm, rank);
    mine->seconds = harness_now() - start;
    snprintf(mine->text, sizeof mine->text, "%s", ring_last_error(comm));
    ring_comm_destroy(comm);
    return 0;
}

/* ---- Runs -------------------------------------------------------------------------- */

/* @return true if anybody had an error. */
static bool run(unsigned long long seed)
{
    harness_board *board;
    bool errors = false;
    const harness_kind kind = harness_kind_of(transport_name);
    const int failed = harness_run(kind, RANKS, take_part, &seed, &board);
    if (failed != 0)
        fail_msg("seed %llu: %d ranks ended before they could tell", seed, failed);
    const outcome *outcomes = (const outcome *)(const void *)board->data;
    for (int r = 0; r < RANKS; r++) {
        const outcome *o = &outcomes[r];
        errors = errors || o->status != RING_OK;
        if (o->seconds > LATEST || (o->status != RING_OK && o->text[0] == '\0'))
            fail_msg("seed %llu: rank %d: %s after %.1f s: %s", seed, r,
                     ring_status_string(o->status), o->seconds, o->text);
    }
    harness_board_free(board);
    return errors;
}

static void lies_do_no_harm(void **state)
{
    const unsigned long long runs = harness_number("RING_TEST_LIES", 20);
    const unsigned long long first = test_seed() * 1000;
    unsigned long long errors = 0;
    for (unsigned long long seed = first; seed < first + runs; seed++)
        errors += run(seed);
    print_message("%llu runs, %llu ended with an error\n", runs, errors);
    assert_true(errors > runs / 2);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    transport_name = argv[1];
    setenv("RING_TRANSPORT", transport_name, 1);
    setenv("RING_TIMEOUT", "2", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(lies_do_no_harm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
