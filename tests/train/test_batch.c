/* SPDX-License-Identifier: Apache-2.0
 * train_batch = micro_batch * accumulation * ranks: deriving what is missing, and the text
 * where it does not fit. */
#include "check.h"
#include "parsing.h"

#include <errors.h>
#include <stdio.h>

#define SGD "\"optimizer\": {\"type\": \"SGD\"}"

static void batch(const char *numbers, int ranks, long train, long micro, long accumulation)
{
    char text[256];
    snprintf(text, sizeof text, "{" SGD "%s}", numbers);
    parsed got = parse(text);
    assert_int_equal(got.status, RING_OK);
    assert_int_equal(config_resolve_batch(&got.config, ranks, "ringrun", BATCH_EXACT), RING_OK);
    assert_int_equal(got.config.train_batch, train);
    assert_int_equal(got.config.micro_batch, micro);
    assert_int_equal(got.config.accumulation, accumulation);
}

static void refused_batch(const char *numbers, int ranks, const char *error)
{
    char text[256];
    snprintf(text, sizeof text, "{" SGD "%s}", numbers);
    parsed got = parse(text);
    assert_int_equal(got.status, RING_OK);
    assert_int_equal(config_resolve_batch(&got.config, ranks, "torchrun", BATCH_EXACT),
                     RING_ERR_CONFIG);
    assert_string_equal(train_error(), error);
}

#define TRAIN ", \"train_batch_size\": "
#define MICRO ", \"train_micro_batch_size_per_gpu\": "
#define ACCUMULATION ", \"gradient_accumulation_steps\": "

static void missing_batch_sizes_follow_from_the_others(void **state)
{
    (void)state;
    batch(MICRO "64" ACCUMULATION "1", 4, 256, 64, 1);
    batch(MICRO "64", 3, 192, 64, 1);
    batch(TRAIN "96", 4, 96, 24, 1);
    batch(TRAIN "96" MICRO "8", 3, 96, 8, 4);
    batch(TRAIN "96" ACCUMULATION "2", 3, 96, 16, 2);
    batch(TRAIN "144" MICRO "24" ACCUMULATION "6", 1, 144, 24, 6);
}

static void the_global_batch_may_be_kept(void **state)
{
    (void)state;
    parsed got = parse("{" SGD TRAIN "144" MICRO "24" ACCUMULATION "6}");
    assert_int_equal(config_resolve_batch(&got.config, 2, "", BATCH_KEEP_GLOBAL), RING_OK);
    assert_int_equal(got.config.train_batch, 144);
    assert_int_equal(got.config.micro_batch, 24);
    assert_int_equal(got.config.accumulation, 3);
    got = parse("{" SGD TRAIN "144" MICRO "24" ACCUMULATION "6}");
    assert_int_equal(config_resolve_batch(&got.config, 5, "", BATCH_KEEP_GLOBAL), RING_ERR_CONFIG);
}

static void batch_sizes_that_do_not_fit_come_with_ways_out(void **state)
{
    (void)state;
    refused_batch(TRAIN "144" MICRO "24" ACCUMULATION "6", 2,
                  "Check batch related parameters. train_batch_size is not equal to "
                  "micro_batch_per_gpu * gradient_acc_step * world_size 144 != 24 * 6 * 2\n"
                  "any of these fits: gradient_accumulation_steps 3, or train_batch_size 288, or 1 "
                  "rank\nthe number of ranks is 2, from torchrun");
    refused_batch(
        TRAIN "100", 3,
        "Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * "
        "gradient_acc_step * world_size 100 != 33 * 1 * 3\n"
        "any of these fits: train_batch_size 99\nthe number of ranks is 3, from torchrun");
    refused_batch("", 1,
                  "Either train_batch_size or train_micro_batch_size_per_gpu needs to be provided");
    refused_batch(ACCUMULATION "2", 1,
                  "Either train_batch_size or train_micro_batch_size_per_gpu needs to be provided");
    refused_batch(TRAIN "3", 4,
                  "Micro batch size per gpu: 0 has to be greater than 0; train_batch_size 3 is too "
                  "small for 4 ranks (from torchrun)");
    refused_batch(TRAIN "8" MICRO "4", 4,
                  "Gradient accumulation steps: 0 has to be greater than 0; train_batch_size 8 is "
                  "less than micro-batch 4 times 4 ranks (from torchrun)");
    refused_batch(MICRO "2e9" ACCUMULATION "2e9", 16,
                  "batch of 2000000000 * 2000000000 * 16 samples is too large");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_global_batch_may_be_kept),
        cmocka_unit_test(missing_batch_sizes_follow_from_the_others),
        cmocka_unit_test(batch_sizes_that_do_not_fit_come_with_ways_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
