/* SPDX-License-Identifier: Apache-2.0
 * RING_REPRODUCIBLE=1: however gradients are cut into parameters and buckets, their sums have the
 * bits of sums in the order of ranks; and what cannot do that is not chosen. More bucketings:
 * RING_TEST_BUCKETINGS=1000.
 * Usage: test_coll_reproducible TRANSPORT */
#include "collective_oracle.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "unit_test.h"

enum { ELEMENTS = 40000, MOST_PARAMS = 40 };

static const ring_dtype types[] = {RING_FLOAT32, RING_BFLOAT16, RING_FLOAT64, RING_FLOAT16};

static size_t draw(uint64_t *state, size_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(*state >> 33) % below;
}

/* Cuts of ELEMENTS, from runs of small ones to a single one. @return how many. */
static size_t cut(uint64_t *state, size_t counts[MOST_PARAMS])
{
    const size_t most = (size_t)8 << draw(state, 14);
    size_t params = 0, left = ELEMENTS;
    while (left > 0 && params < MOST_PARAMS - 1) {
        const size_t wanted = draw(state, most);
        counts[params] = wanted < left ? wanted : left;
        left -= counts[params++];
    }
    counts[params] = left;
    return params + 1;
}

static int reduce_in_buckets(uint64_t *state, int rank, const oracle_case *c, void *grads,
                             ring_comm *comm)
{
    size_t counts[MOST_PARAMS];
    const size_t params = cut(state, counts), bytes = (size_t)64 << draw(state, 13);
    ring_buckets *buckets;
    oracle_fill(c, rank, grads, 0, ELEMENTS);
    EXPECT_OK(
        ring_buckets_create(&buckets, grads, counts, params, c->dtype, RING_SUM, bytes, comm));
    for (size_t k = params; k-- > 0;)
        EXPECT_OK(ring_buckets_ready(buckets, k));
    EXPECT_OK(ring_buckets_wait(buckets));
    ring_buckets_destroy(buckets);
    EXPECT(oracle_is_reduced(c, grads, 0, ELEMENTS), "rank %d: %zu parameters, %zu bytes", rank,
           params, bytes);
    return 0;
}

static int reduce_bucketings(int rank, int ranks, harness_board *board, void *arg)
{
    const uint64_t times = harness_number("RING_TEST_BUCKETINGS", 12);
    ring_comm *comm;
    void *grads;
    uint64_t state = 1;
    int failed = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_mem_alloc(&grads, ELEMENTS * sizeof(double)));
    for (uint64_t i = 0; i < times && !failed; i++) {
        const oracle_case c = {.dtype = types[i % (sizeof types / sizeof *types)],
                               .op = RING_SUM,
                               .ranks = ranks,
                               .data = ORACLE_RANDOM,
                               .order = oracle_rank_order,
                               .seed = (unsigned)i,
                               .total = ELEMENTS};
        failed = reduce_in_buckets(&state, rank, &c, grads, comm);
    }
    EXPECT_OK(ring_mem_free(grads));
    ring_comm_destroy(comm);
    return failed;
}

static void any_bucketing_gives_the_bits_of_rank_order(void **state)
{
    for (int ranks = 2; ranks <= 8; ranks++)
        run(ranks, reduce_bucketings);
}

/* ---- The choice ---------------------------------------------------------------------- */

enum { RANKS = 3, COUNT = 1000 };

/* Ranks of this process. Rank 0's setting holds for all. */
static void join(ring_comm *comms[RANKS])
{
    static const char *const settings[2][2] = {{"RING_REPRODUCIBLE=0"}, {"RING_REPRODUCIBLE=1"}};
    ring_unique_id id;
    assert_int_equal(ring_get_unique_id(&id), RING_OK);
    for (int r = 0; r < RANKS; r++) {
        ring_config config = RING_CONFIG_INIT;
        config.nonblocking = 1;
        config.settings = settings[r == 0];
        assert_int_equal(ring_comm_init_config(&comms[r], RANKS, &id, r, &config), RING_OK);
    }
}

static void end_calls(ring_comm *comms[RANKS], ring_work *works[RANKS], const char *algorithm,
                      bool taken)
{
    assert_int_equal(ring_wait_all(works, RANKS), RING_OK);
    for (int r = 0; r < RANKS; r++) {
        ring_comm_info info = {.size = sizeof info};
        assert_int_equal(ring_comm_get_info(comms[r], &info), RING_OK);
        assert_int_equal(strcmp(info.algorithm, algorithm) == 0, taken);
    }
}

static void an_algorithm_of_another_order_is_not_taken(void **state)
{
    static float x[RANKS][COUNT], all[RANKS][RANKS * COUNT];
    ring_comm *comms[RANKS];
    ring_work *works[RANKS];
    setenv("RING_ALGO", "ring", 1);
    join(comms);
    for (int r = 0; r < RANKS; r++) {
        ring_call call = RING_CALL_INIT;
        call.work = &works[r];
        assert_int_equal(ring_all_reduce(x[r], x[r], COUNT, RING_FLOAT32, RING_SUM, comms[r],
                                         &call),
                         RING_OK);
    }
    end_calls(comms, works, "ring", false);
    for (int r = 0; r < RANKS; r++) {
        ring_call call = RING_CALL_INIT;
        call.work = &works[r];
        assert_int_equal(ring_all_gather(x[r], all[r], COUNT, RING_FLOAT32, comms[r], &call),
                         RING_OK);
    }
    end_calls(comms, works, "ring", true); /* blocks that move have no order */
    for (int r = 0; r < RANKS; r++)
        ring_comm_destroy(comms[r]);
    unsetenv("RING_ALGO");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_bucketing_gives_the_bits_of_rank_order),
        cmocka_unit_test(an_algorithm_of_another_order_is_not_taken),
    };
    cases_begin(argc, argv);
    setenv("RING_REPRODUCIBLE", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
