/* SPDX-License-Identifier: Apache-2.0
 * Gradient buckets: sums, order of readiness, misuse.
 * Usage: test_coll_buckets TRANSPORT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "unit_test.h"

enum { PARAMS = 9 };
static const size_t counts[PARAMS] = {20000, 1, 333, 0, 7000, 64, 12345, 10, 500};

static size_t total(void)
{
    size_t sum = 0;
    for (int i = 0; i < PARAMS; i++)
        sum += counts[i];
    return sum;
}

static int reduce_rounds(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    ring_buckets *buckets;
    float *grads;
    EXPECT_OK(ring_mem_alloc((void **)&grads, total() * sizeof *grads));
    EXPECT_OK(ring_buckets_create(&buckets, grads, counts, PARAMS, RING_FLOAT32, RING_SUM,
                                  8192 * sizeof(float), comm));
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < total(); i++)
            grads[i] = (float)(i % 1000) + (float)(rank + round);
        for (int k = 0; k < PARAMS; k++) { /* ranks finish their parameters in other orders */
            const size_t index = (size_t)((PARAMS - 1 - k + rank * 2) % PARAMS);
            EXPECT_OK(ring_buckets_ready(buckets, index));
        }
        EXPECT_OK(ring_buckets_wait(buckets));
        for (size_t i = 0; i < total(); i++) {
            const float want = (float)(ranks * (int)(i % 1000) + ranks * (ranks - 1) / 2 +
                                       ranks * round);
            EXPECT(grads[i] == want, "round %d element %zu: %g, want %g", round, i,
                   (double)grads[i], (double)want);
        }
    }
    ring_buckets_destroy(buckets);
    EXPECT_OK(ring_mem_free(grads));
    return 0;
}

static void test_buckets_sum_whatever_the_order_of_readiness(void **state)
{
    for (int ranks = 1; ranks <= 4; ranks++)
        run_joined(ranks, reduce_rounds);
}

static int misuse(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_buckets *buckets;
    float grads[3] = {1, 2, 3};
    const size_t three[] = {1, 1, 1};
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_buckets_create(&buckets, grads, three, 3, RING_FLOAT32, RING_SUM, 0, comm));
    EXPECT(ring_buckets_ready(buckets, 3) == RING_ERR_ARGUMENT, "index");
    EXPECT_OK(ring_buckets_ready(buckets, 1));
    EXPECT(ring_buckets_ready(buckets, 1) == RING_ERR_USAGE, "twice");
    EXPECT(ring_buckets_wait(buckets) == RING_ERR_USAGE, "not all ready");
    EXPECT(strstr(ring_last_error(NULL), "parameter 0") != NULL, "%s", ring_last_error(NULL));
    ring_buckets_destroy(buckets);
    ring_comm_destroy(comm);
    return 0;
}

static void test_misuse_is_named(void **state)
{
    run(2, misuse);
}

/* Counts whose sum, or whose bytes, would overflow. */
static int counts_beyond_memory_are_refused_by_index(ring_comm *comm, int rank, int ranks,
                                                     harness_board *board)
{
    static const size_t sums[] = {1, SIZE_MAX / 2 + 3, SIZE_MAX / 2 + 3};
    static const size_t bytes[] = {SIZE_MAX / 4 + 3}, half[] = {7, PTRDIFF_MAX / 4};
    ring_buckets *buckets;
    float grads[1];
    EXPECT(ring_buckets_create(&buckets, grads, sums, 3, RING_INT8, RING_SUM, 0, comm) ==
               RING_ERR_ARGUMENT,
           "sum");
    EXPECT(strstr(ring_last_error(NULL), "counts[1]") != NULL, "%s", ring_last_error(NULL));
    EXPECT(ring_buckets_create(&buckets, grads, bytes, 1, RING_FLOAT32, RING_SUM, 0, comm) ==
               RING_ERR_ARGUMENT,
           "bytes");
    EXPECT(strstr(ring_last_error(NULL), "counts[0]") != NULL, "%s", ring_last_error(NULL));
    EXPECT(ring_buckets_create(&buckets, grads, half, 2, RING_FLOAT32, RING_SUM, 0, comm) ==
               RING_ERR_ARGUMENT,
           "more than PTRDIFF_MAX");
    EXPECT(strstr(ring_last_error(NULL), "counts[1]") != NULL, "%s", ring_last_error(NULL));
    EXPECT(buckets == NULL, "a failed call leaves NULL");
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets_sum_whatever_the_order_of_readiness),
        cmocka_unit_test(test_misuse_is_named),
        CASE(counts_beyond_memory_are_refused_by_index, 1),
    };
    cases_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
