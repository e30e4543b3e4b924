/* SPDX-License-Identifier: Apache-2.0
 * Sums of products with a factor of each rank: what the sweeps do not reach. Those compare values
 * with the oracle. Usage: test_coll_premul TRANSPORT */
#include "doubles/far.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "unit_test.h"

static float factor_of(int rank, int round)
{
    return (float)(rank + 1) * 0.5F - (float)round;
}

/* Of whole numbers and halves, so that the order of the sum does not matter. */
static float value_of(int rank, size_t i)
{
    return (float)((i * 7 + (size_t)rank * 3) % 50) - 20;
}

static float sum_at(int ranks, int round, size_t i)
{
    float sum = 0;
    for (int rank = 0; rank < ranks; rank++)
        sum += factor_of(rank, round) * value_of(rank, i);
    return sum;
}

static float *new_input(int rank, size_t count)
{
    float *x = malloc(count * sizeof *x);
    for (size_t i = 0; x != NULL && i < count; i++)
        x[i] = value_of(rank, i);
    return x;
}

static int compare(const float *x, int ranks, int round, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        EXPECT(x[i] == sum_at(ranks, round, first + i), "round %d, element %zu: %g, not %g", round,
               first + i, (double)x[i], (double)sum_at(ranks, round, first + i));
    return 0;
}

/* ---- Refusals ------------------------------------------------------------------------------ */

static ring_status sum(ring_comm *comm, ring_dtype dtype, ring_op op, const double *scale)
{
    static _Thread_local double x[4];
    ring_call call = RING_CALL_INIT;
    call.scale = scale;
    return ring_all_reduce(x, x, 4, dtype, op, comm, &call);
}

static int refuses(ring_status status, const char *why)
{
    EXPECT(status == RING_ERR_ARGUMENT, "%s: %s", why, ring_status_string(status));
    EXPECT(strstr(ring_last_error(NULL), why) != NULL, "%s, not %s", ring_last_error(NULL), why);
    return 0;
}

static int refuse_structs(ring_comm *comm)
{
    float x[4] = {0};
    const double one = 1;
    ring_prepared *prepared = NULL;
    ring_call call = RING_CALL_INIT;
    call.scale = &one;
    call.size = offsetof(ring_call, scale); /* an older caller's struct has no factor */
    int wrong = refuses(ring_all_reduce(x, x, 4, RING_FLOAT32, RING_PREMUL_SUM, comm, &call),
                        "needs this rank's factor");
    call.size = sizeof call;
    call.prepared = &prepared;
    wrong |= refuses(ring_all_reduce(x, x, 4, RING_FLOAT32, RING_PREMUL_SUM, comm, &call),
                     "those to ring_prepared_start()");
    call.scale = NULL;
    EXPECT_OK(ring_all_reduce(x, x, 4, RING_FLOAT32, RING_PREMUL_SUM, comm, &call));
    wrong |= refuses(ring_prepared_start(prepared, NULL), "needs this rank's factor");
    ring_prepared_destroy(prepared);
    return wrong;
}

static int what_is_no_factor_is_refused(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    const double one = 1, large = 1e39, infinite = (double)INFINITY, nan_factor = (double)NAN;
    float x[4] = {0};
    const size_t count = 4;
    ring_buckets *buckets;
    const ring_op op = RING_PREMUL_SUM;
    int wrong = refuses(sum(comm, RING_FLOAT32, op, NULL), "needs this rank's factor");
    wrong |= refuses(sum(comm, RING_FLOAT32, op, &nan_factor), "it must be a finite float32");
    wrong |= refuses(sum(comm, RING_FLOAT64, op, &infinite), "it must be a finite float64");
    wrong |= refuses(sum(comm, RING_BFLOAT16, op, &large), "it must be a finite float32");
    wrong |= refuses(sum(comm, RING_INT16, op, &one), "is for floats, not for int16");
    wrong |= refuses(sum(comm, RING_FLOAT32, RING_SUM, &one), "scale is only for premul_sum");
    wrong |= refuses(ring_buckets_create(&buckets, x, &count, 1, RING_FLOAT32, op, 0, comm),
                     "premul_sum");
    wrong |= refuse_structs(comm);
    EXPECT_OK(sum(comm, RING_FLOAT64, op, &large));
    return wrong;
}

static int memory_of_accelerators_is_refused(ring_comm *comm, int rank, int ranks,
                                             harness_board *board)
{
    const double one = 1;
    ring_call call = RING_CALL_INIT;
    float *far = far_alloc(4096);
    call.scale = &one;
    EXPECT(ring_all_reduce(far, far, 8, RING_FLOAT32, RING_PREMUL_SUM, comm, &call) ==
               RING_ERR_UNSUPPORTED,
           "%s", ring_last_error(NULL));
    EXPECT_OK(ring_all_reduce(far, far, 8, RING_FLOAT32, RING_SUM, comm, NULL));
    far_free(far);
    return 0;
}

static int a_sum_on_another_rank_is_a_mismatch(int rank, int ranks, harness_board *board, void *arg)
{
    const double one = 1;
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const ring_status status = sum(comm, RING_FLOAT32, rank == 0 ? RING_PREMUL_SUM : RING_SUM,
                                   rank == 0 ? &one : NULL);
    EXPECT(status == RING_ERR_MISMATCH, "%s", ring_status_string(status));
    EXPECT(strstr(ring_last_error(comm), "float32, premul_sum") != NULL &&
               strstr(ring_last_error(comm), "float32, sum") != NULL,
           "%s", ring_last_error(comm));
    ring_comm_destroy(comm);
    return 0;
}

/* ---- Options ------------------------------------------------------------------------------- */

/* The call multiplies the values that src holds when the event is set. */
static int products_are_made_after_the_event(ring_comm *comm, int rank, int ranks,
                                             harness_board *board)
{
    enum { COUNT = 3000 };
    ring_event *event;
    ring_work *work;
    double scale = (double)factor_of(rank, 1);
    ring_call call = RING_CALL_INIT;
    float *x = calloc(COUNT, sizeof *x), *y = calloc(COUNT, sizeof *y);
    EXPECT_OK(ring_event_create(&event));
    call.work = &work;
    call.after = event;
    call.scale = &scale;
    y[0] = 77;
    EXPECT_OK(ring_all_reduce(x, y, COUNT, RING_FLOAT32, RING_PREMUL_SUM, comm, &call));
    scale = 1e9; /* it was read */
    (void)ring_wait_for(&work, 0.001);
    EXPECT(y[0] == 77, "written before the event: %g", (double)y[0]);
    for (size_t i = 0; i < COUNT; i++)
        x[i] = value_of(rank, i);
    EXPECT_OK(ring_event_set(event, RING_OK));
    EXPECT_OK(ring_wait(&work));
    const int wrong = compare(y, ranks, 1, 0, COUNT);
    ring_event_destroy(event);
    free(x);
    free(y);
    return wrong;
}

enum { CALLS = 6, LEAST = 900 };

typedef struct scatter {
    float *src, *dst;
    size_t count;
    ring_work *work;
} scatter;

static int start_scatter(scatter *s, int rank, int ranks, int round, ring_comm *comm)
{
    const double scale = (double)factor_of(rank, round);
    ring_call call = RING_CALL_INIT;
    call.work = &s->work;
    call.scale = &scale;
    s->src = new_input(rank, s->count * (size_t)ranks);
    s->dst = calloc(s->count, sizeof *s->dst);
    EXPECT_OK(
        ring_reduce_scatter(s->src, s->dst, s->count, RING_FLOAT32, RING_PREMUL_SUM, comm, &call));
    return 0;
}

static int check_scatter(scatter *s, int rank, int ranks, int round)
{
    EXPECT_OK(ring_wait(&s->work));
    EXPECT(compare(s->dst, ranks, round, (size_t)rank * s->count, s->count) == 0, "%zu elements",
           s->count);
    EXPECT(s->src[1] == value_of(rank, 1), "src was changed");
    free(s->src);
    free(s->dst);
    return 0;
}

static int scatter_round(scatter *calls, int rank, int ranks, int round, ring_comm *comm)
{
    int wrong = 0;
    for (int i = 0; i < CALLS; i++) {
        calls[i].count = (size_t)LEAST << i;
        EXPECT(start_scatter(&calls[i], rank, ranks, i + round, comm) == 0, "call %d", i);
    }
    for (int i = 0; i < CALLS; i++)
        wrong |= check_scatter(&calls[i], rank, ranks, i + round);
    return wrong;
}

/* Each with memory of its own, of another length each. */
static int calls_at_a_time_have_products_of_their_own(ring_comm *comm, int rank, int ranks,
                                                      harness_board *board)
{
    enum { ROUNDS = 3 };
    scatter calls[CALLS];
    for (int round = 0; round < ROUNDS; round++)
        EXPECT(scatter_round(calls, rank, ranks, round, comm) == 0, "round %d", round);
    return 0;
}

static int one_start(ring_prepared *prepared, int rank, int round)
{
    const double scale = (double)factor_of(rank, round);
    ring_call start = RING_CALL_INIT;
    start.scale = &scale;
    if (round != 1)
        return ring_prepared_start(prepared, &start) != RING_OK;
    EXPECT_OK(ring_group_start());
    EXPECT_OK(ring_prepared_start(prepared, &start));
    EXPECT_OK(ring_group_end());
    return 0;
}

/* Longer than a turn of the engine. */
static int each_start_has_a_factor_of_its_own(ring_comm *comm, int rank, int ranks,
                                              harness_board *board)
{
    enum { COUNT = 5 << 20, STARTS = 3 };
    ring_prepared *prepared;
    float *x = new_input(rank, COUNT), *y = malloc(COUNT * sizeof *y);
    ring_call call = RING_CALL_INIT;
    call.prepared = &prepared;
    EXPECT_OK(ring_all_reduce(x, y, COUNT, RING_FLOAT32, RING_PREMUL_SUM, comm, &call));
    for (int round = 0; round < STARTS; round++) {
        EXPECT(one_start(prepared, rank, round) == 0, "%s", ring_last_error(NULL));
        EXPECT(compare(y, ranks, round, 0, COUNT) == 0, "start %d", round);
    }
    ring_prepared_destroy(prepared);
    free(x);
    free(y);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(what_is_no_factor_is_refused, 2),
        CASE(memory_of_accelerators_is_refused, 2),
        CASE_ALONE(a_sum_on_another_rank_is_a_mismatch, 2),
        CASE(products_are_made_after_the_event, 3),
        CASE(calls_at_a_time_have_products_of_their_own, 2, 3),
        CASE(each_start_has_a_factor_of_its_own, 2),
    };
    cases_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
