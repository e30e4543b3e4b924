/* SPDX-License-Identifier: Apache-2.0
 * Orders against PyTorch's DistributedSampler, and what must hold for any of them. */
#include "check.h"
#include "vectors.h"

#include <errors.h>
#include <inttypes.h>
#include <random.h>
#include <sampler.h>
#include <stdio.h>
#include <stdlib.h>

static void orders_equal_pytorchs_bit_for_bit(void **state)
{
    const char *row;
    size_t i = 0;
    for (; (row = vector_row("training/sampler", i)) != NULL; i++) {
        size_t samples, length;
        int ranks, rank, in_order, drop_last;
        uint64_t seed, epoch, hash;
        uint32_t first[4];
        const int fields = sscanf(row,
                                  "%zu %d %d %" SCNu64 " %" SCNu64 " %d %d %zu %" SCNx64 " %" SCNu32
                                  " %" SCNu32 " %" SCNu32 " %" SCNu32,
                                  &samples, &ranks, &rank, &seed, &epoch, &in_order, &drop_last,
                                  &length, &hash, &first[0], &first[1], &first[2], &first[3]);
        const size_t firsts = length < 4 ? length : 4;
        train_sampler sampler;
        const sampler_rule rule = {.seed = seed, .in_order = in_order, .drop_last = drop_last};
        assert_true(fields >= 9 + (int)firsts);
        assert_int_equal(sampler_create(&sampler, samples, ranks, rank, &rule), RING_OK);
        sampler_set_epoch(&sampler, epoch);
        assert_int_equal(sampler.per_rank, length);
        for (size_t k = 0; k < firsts; k++)
            assert_int_equal(sampler.order[k], first[k]);
        assert_int_equal(fnv1a(sampler.order, sampler.per_rank * sizeof(uint32_t)), hash);
        sampler_destroy(&sampler);
    }
    assert_true(i > 40);
}

static void ranks_take_every_sample_and_repeat_only_the_rest(void **state)
{
    enum { SAMPLES = 23 };
    for (int ranks = 1; ranks <= 30; ranks++) {
        unsigned taken[SAMPLES] = {0}, sum = 0;
        size_t repeated = 0;
        for (int rank = 0; rank < ranks; rank++) {
            train_sampler sampler;
            assert_int_equal(sampler_create(&sampler, SAMPLES, ranks, rank,
                                            &(sampler_rule){.seed = 1}),
                             RING_OK);
            sampler_set_epoch(&sampler, 4);
            for (size_t k = 0; k < sampler.per_rank; k++)
                taken[sampler.order[k]]++;
            repeated = sampler_repeated(&sampler);
            sampler_destroy(&sampler);
        }
        for (int i = 0; i < SAMPLES; i++) {
            assert_in_range(taken[i], 1, 2);
            sum += taken[i];
        }
        assert_int_equal(sum, SAMPLES + repeated);
        assert_int_equal((SAMPLES + repeated) % (size_t)ranks, 0);
    }
}

/* As long as there is a sample for each. */
static void ranks_that_drop_the_rest_take_no_sample_twice(void **state)
{
    enum { SAMPLES = 23 };
    for (int ranks = 1; ranks <= SAMPLES; ranks++) {
        unsigned taken[SAMPLES] = {0}, sum = 0;
        size_t left_out = 0;
        for (int rank = 0; rank < ranks; rank++) {
            train_sampler sampler;
            const sampler_rule rule = {.seed = 1, .drop_last = true};
            assert_int_equal(sampler_create(&sampler, SAMPLES, ranks, rank, &rule), RING_OK);
            sampler_set_epoch(&sampler, 4);
            for (size_t k = 0; k < sampler.per_rank; k++)
                taken[sampler.order[k]]++;
            left_out = sampler_left_out(&sampler);
            assert_int_equal(sampler_repeated(&sampler), 0);
            sampler_destroy(&sampler);
        }
        for (int i = 0; i < SAMPLES; i++) {
            assert_in_range(taken[i], 0, 1);
            sum += taken[i];
        }
        assert_int_equal(sum + left_out, SAMPLES);
        assert_int_equal(left_out, SAMPLES % ranks);
    }
}

static void without_shuffle_epochs_and_seeds_change_nothing(void **state)
{
    for (uint64_t seed = 0; seed < 3; seed++) {
        train_sampler sampler;
        const sampler_rule rule = {.seed = seed, .in_order = true};
        assert_int_equal(sampler_create(&sampler, 10, 3, 1, &rule), RING_OK);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            static const uint32_t expected[] = {1, 4, 7, 0}; /* 0 is 10, the head again */
            sampler_set_epoch(&sampler, epoch);
            assert_int_equal(sampler.per_rank, COUNT_OF(expected));
            assert_memory_equal(sampler.order, expected, sizeof expected);
        }
        sampler_destroy(&sampler);
    }
}

/* n ranks take the same steps as one: a global batch is the same set. */
static void ranks_together_take_what_one_rank_takes(void **state)
{
    train_sampler alone, second;
    assert_int_equal(sampler_create(&alone, 100, 1, 0, &(sampler_rule){.seed = 3}), RING_OK);
    assert_int_equal(sampler_create(&second, 100, 4, 1, &(sampler_rule){.seed = 3}), RING_OK);
    sampler_set_epoch(&alone, 2);
    sampler_set_epoch(&second, 2);
    for (size_t k = 0; k < second.per_rank; k++)
        assert_int_equal(second.order[k], alone.order[4 * k + 1]);
    sampler_destroy(&alone);
    sampler_destroy(&second);
}

static void impossible_numbers_of_samples_are_refused(void **state)
{
    train_sampler sampler;
    assert_int_equal(sampler_create(&sampler, 0, 1, 0, &(sampler_rule){0}), RING_ERR_ARGUMENT);
    assert_int_equal(sampler_create(&sampler, SIZE_MAX, 1, 0, &(sampler_rule){0}),
                     RING_ERR_ARGUMENT);
}

/* The published test value of the generator: its 10000th number for seed 5489. */
static void the_generator_is_mt19937(void **state)
{
    train_random random;
    uint32_t last = 0;
    random_seed(&random, 5489);
    for (int i = 0; i < 10000; i++)
        last = random_u32(&random);
    assert_int_equal(last, 4123659995U);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_equal_pytorchs_bit_for_bit),
        cmocka_unit_test(ranks_take_every_sample_and_repeat_only_the_rest),
        cmocka_unit_test(ranks_that_drop_the_rest_take_no_sample_twice),
        cmocka_unit_test(without_shuffle_epochs_and_seeds_change_nothing),
        cmocka_unit_test(ranks_together_take_what_one_rank_takes),
        cmocka_unit_test(impossible_numbers_of_samples_are_refused),
        cmocka_unit_test(the_generator_is_mt19937),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
