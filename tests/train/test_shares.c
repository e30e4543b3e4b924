/* SPDX-License-Identifier: Apache-2.0
 * Shares of ranks: nothing is lost, taken twice or counted differently, whatever the numbers. */
#include "check.h"

#include <sampler.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3 };

static data_shares make(const size_t micro[RANKS], size_t accumulation)
{
    data_shares shares;
    assert_int_equal(shares_create(&shares, RANKS, 1, 0, accumulation), RING_OK);
    memcpy(shares.micro, micro, RANKS * sizeof *micro);
    return shares;
}

static void expect(const data_shares *shares, int rank, const size_t *taken, size_t updates)
{
    for (size_t u = 0; u < updates; u++)
        assert_int_equal(shares_taken(shares, rank, u), taken[u]);
}

/* 53 = 2 * (12 + 8 + 4) + 5: of the rest the first rank takes all. */
static void samples_are_dealt_in_rounds(void **state)
{
    data_shares shares = make((const size_t[]){6, 4, 2}, 2);
    shares_deal(&shares, 53);
    shares_settle(&shares, false, false);
    assert_int_equal(shares.updates, 3);
    expect(&shares, 0, (const size_t[]){12, 12, 5}, 3);
    expect(&shares, 1, (const size_t[]){8, 8, 0}, 3);
    expect(&shares, 2, (const size_t[]){4, 4, 0}, 3);
    assert_int_equal(shares_total(&shares, 0), 24);
    assert_int_equal(shares_total(&shares, 2), 5);
    assert_int_equal(shares_micro_batches(&shares, 0), 2);
    assert_int_equal(shares_micro_batches(&shares, 2), 1);
    shares_free(&shares);
}

static void ranks_that_are_out_of_data_wait_or_end_the_epoch(void **state)
{
    for (int shortest = 0; shortest <= 1; shortest++) {
        data_shares shares = make((const size_t[]){10, 10, 10}, 1);
        memcpy(shares.samples, (const size_t[]){45, 20, 30}, RANKS * sizeof(size_t));
        shares_settle(&shares, false, shortest != 0);
        assert_int_equal(shares.updates, shortest ? 2 : 5);
        assert_int_equal(shares_total(&shares, 1), 30);
        assert_int_equal(shares_total(&shares, 2), shortest ? 0 : 20);
        assert_int_equal(shares_total(&shares, 4), shortest ? 0 : 5);
        shares_free(&shares);
    }
}

static void drop_last_leaves_short_micro_batches_out(void **state)
{
    data_shares shares = make((const size_t[]){10, 7, 50}, 1);
    memcpy(shares.samples, (const size_t[]){45, 45, 45}, RANKS * sizeof(size_t));
    shares_settle(&shares, true, false);
    assert_int_equal(shares.samples[0], 40);
    assert_int_equal(shares.samples[1], 42);
    assert_int_equal(shares.samples[2], 0);
    assert_int_equal(shares.updates, 6);
    shares_free(&shares);
}

/* Of every round, dealt in turn, or of the whole share, together. */
static void every_sample_goes_to_one_rank(void **state)
{
    enum { SAMPLES = 101 };
    data_shares shares = make((const size_t[]){5, 1, 3}, 2);
    train_sampler alone;
    shares_deal(&shares, SAMPLES);
    shares_settle(&shares, false, false);
    assert_int_equal(sampler_create(&alone, SAMPLES, 1, 0, &(sampler_rule){.seed = 9}), RING_OK);
    sampler_set_epoch(&alone, 4);
    for (int contiguous = 0; contiguous <= 1; contiguous++) {
        size_t at = 0;
        int seen[SAMPLES] = {0};
        for (int rank = 0; rank < RANKS; rank++) {
            train_sampler sampler;
            assert_int_equal(sampler_create_shares(&sampler, SAMPLES, &shares, rank,
                                                   &(sampler_rule){.seed = 9}, contiguous != 0),
                             RING_OK);
            sampler_set_epoch(&sampler, 4);
            for (size_t k = 0; k < sampler.per_rank; k++) {
                seen[sampler.order[k]]++;
                if (contiguous)
                    assert_int_equal(sampler.order[k], alone.order[at++]);
            }
            if (!contiguous) /* the second round's samples of this rank */
                assert_int_equal(sampler.order[shares.micro[rank]],
                                 alone.order[9 + (rank > 0 ? 5 : 0) + (rank > 1 ? 1 : 0)]);
            assert_int_equal(sampler_repeated(&sampler), 0);
            sampler_destroy(&sampler);
        }
        for (int i = 0; i < SAMPLES; i++)
            assert_int_equal(seen[i], 1);
    }
    sampler_destroy(&alone);
    shares_free(&shares);
}

/* After a resume between two updates the ranks take what follows the update before, and no more. */
static void equal_ranks_that_take_micro_batches_go_on_after_an_update(void **state)
{
    enum { SAMPLES = 96, ROUND = 3 * 4, TAKEN = ROUND + 4 };
    data_shares shares = make((const size_t[]){4, 4, 4}, 1);
    int seen[SAMPLES] = {0};
    train_sampler alone;
    shares_deal(&shares, SAMPLES);
    shares_settle(&shares, false, false);
    assert_int_equal(shares_resume(&shares, TAKEN, false), TAKEN - ROUND);
    assert_int_equal(sampler_create(&alone, SAMPLES, 1, 0, &(sampler_rule){.seed = 9}), RING_OK);
    sampler_set_epoch(&alone, 0);
    for (int rank = 0; rank < RANKS; rank++) {
        train_sampler sampler;
        assert_int_equal(sampler_create_shares(&sampler, SAMPLES, &shares, rank,
                                               &(sampler_rule){.seed = 9}, false),
                         RING_OK);
        sampler_set_epoch(&sampler, 0);
        for (size_t k = shares_begin(&shares, rank, 0); k < sampler.per_rank; k++)
            seen[sampler.order[k]]++;
        sampler_destroy(&sampler);
    }
    for (int i = 0; i < SAMPLES; i++)
        assert_int_equal(seen[alone.order[i]], i >= ROUND);
    sampler_destroy(&alone);
    shares_free(&shares);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_dealt_in_rounds),
        cmocka_unit_test(ranks_that_are_out_of_data_wait_or_end_the_epoch),
        cmocka_unit_test(drop_last_leaves_short_micro_batches_out),
        cmocka_unit_test(every_sample_goes_to_one_rank),
        cmocka_unit_test(equal_ranks_that_take_micro_batches_go_on_after_an_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
