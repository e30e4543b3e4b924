/* SPDX-License-Identifier: Apache-2.0
 * Ranks with batches and shares of the data of their own, as programs.
 * Arguments: folder of the programs, docs/examples/mnist, folder with seeds/. */
#include "check.h"
#include "files.h"
#include "programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SGD "optimizer: {type: \"SGD\", params: {lr: 0.1, momentum: 0.9}}}"

static int set_up(void **state)
{
    files_folder();
    files_dataset(1000, 100);
    return 0;
}

static void expect_same_losses(const programs_run *run, const programs_run *alone)
{
    programs_expect_success(run);
    assert_int_equal(run->steps, alone->steps);
    for (size_t i = 0; i < run->steps; i++)
        assert_near(run->loss[i], alone->loss[i], 1e-6, 0);
}

/* Seed 002's ranks, 30 and 20, beside one process with 50. */
static void thirty_and_twenty_are_fifty(void **state)
{
    programs_run *alone = programs_train_config(0, "{train_batch_size: 50, " SGD,
                                                "--max-steps 100");
    programs_expect_success(alone);
    assert_int_equal(alone->steps, 100);
    assert_true(alone->loss[99] < 0.9 * alone->loss[0]);
    static const char *const ways[] = {
        "{train_micro_batch_size_per_gpu: [30, 20], data_partition: [600, 400], " SGD,
        "{train_micro_batch_size_per_gpu: [30, 20], data_partition: \"auto\", " SGD,
        "{train_batch_size: 50, train_micro_batch_size_per_gpu: [15, 10], " SGD,
        "{train_micro_batch_size_per_gpu: [30, 20], zero_optimization: {stage: 3}, " SGD,
    };
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        programs_run *run = programs_train_config(2, ways[i], "--max-steps 100");
        expect_same_losses(run, alone);
        programs_expect_same_params(2);
        programs_free(run);
    }
    programs_free(alone);
}

/* Images in colour, of CIFAR-10's size, in the test's folder. */
static void draw_colours(const char *options)
{
    programs_run *run = programs_shell("%s/ringdigits --cifar %s %s 2>&1", programs.bin, options,
                                       files_path(""));
    programs_expect_success(run);
    programs_free(run);
}

/* AlexNet's kinds of layers; dropout is drawn by the numbers of samples. */
static void thirty_and_twenty_are_fifty_with_a_convolution_and_dropout(void **state)
{
    static const char layers[] =
        "{input: [3, 32, 32], layers: [{type: \"conv2d\", channels: 4, kernel: 3, stride: 2, "
        "padding: 1}, {type: \"relu\"}, {type: \"max_pool2d\", kernel: 2}, {type: \"flatten\"}, "
        "{type: \"dropout\"}, {type: \"linear\", features: 10}]}";
    char options[200];
    draw_colours("-n 1000 -t 100");
    files_write("small.json", layers, strlen(layers));
    snprintf(options, sizeof options,
             "--max-steps 20 --loss cross_entropy --normalize 0.5/0.25 --model %s",
             files_path("small.json"));
    programs_run *alone = programs_train_config(0, "{train_batch_size: 50, " SGD, options);
    programs_run *run = programs_train_config(2, "{train_micro_batch_size_per_gpu: [30, 20], " SGD,
                                              options);
    programs_expect_success(alone);
    expect_same_losses(run, alone);
    programs_free(run);
    programs_free(alone);
}

/* docs/examples/cifar as it stands, for one update. */
static void the_experiment_with_alexnet_runs(void **state)
{
    draw_colours("-t 50");
    programs_run *run = programs_shell(
        "%s/ringrun -n 2 %s/ringtrain --deepspeed_config %s/../cifar/uneven.json --data %s --model "
        "alexnet --loss cross_entropy --normalize 0.485,0.456,0.406/0.229,0.224,0.225 --max-steps "
        "1 --eval-every 0 2>&1",
        programs.bin, programs.bin, programs.examples, files_path(""));
    programs_expect_success(run);
    programs_expect_output(run, "training alexnet (23272266 parameters, loss cross_entropy) on "
                                "50000 samples, testing on 50, with 2 ranks; ");
    programs_expect_output(run,
                           "rank 0: 30000 samples in micro-batches of 30: 1000 updates an epoch\n"
                           "rank 1: 20000 samples in micro-batches of 20: 1000 updates an epoch\n");
    programs_expect_output(run, "first update done ");
    programs_free(run);
}

/* 1000 = 7 * 130 + 90: in the last update rank 2 has no samples, and rank 1 fewer micro-batches. */
static void a_rank_without_samples_takes_part(void **state)
{
    static const char *const configs[][2] = {
        {"{train_batch_size: 130, " SGD, "{train_batch_size: 130, train_micro_batch_size_per_gpu: "
                                         "[40, 25], gradient_accumulation_steps: 2, "},
        {"{train_batch_size: 130, " SGD, "{train_micro_batch_size_per_gpu: [80, 20, 30], "},
    };
    for (size_t i = 0; i < COUNT_OF(configs); i++) {
        programs_run *alone = programs_train_config(0, configs[i][0], "--epochs 2");
        programs_expect_success(alone);
        assert_int_equal(alone->steps, 16);
        for (int stage = 0; stage <= 3; stage++) {
            char config[400];
            snprintf(config, sizeof config, "%szero_optimization: {stage: %d}, " SGD, configs[i][1],
                     stage);
            programs_run *run = programs_train_config(i == 0 ? 2 : 3, config, "--epochs 2");
            expect_same_losses(run, alone);
            programs_expect_same_params(i == 0 ? 2 : 3);
            programs_free(run);
        }
        programs_free(alone);
    }
}

/* Gradients go through copies there, which must be zeros, too. */
static void a_rank_without_samples_takes_part_in_16_bits(void **state)
{
    programs_run *alone = programs_train_config(
        0, "{train_batch_size: 130, bf16: {enabled: true}, " SGD, "--epochs 2");
    programs_expect_success(alone);
    for (int stage = 0; stage <= 3; stage++) {
        char config[400];
        snprintf(config, sizeof config,
                 "{train_micro_batch_size_per_gpu: [80, 20, 30], bf16: {enabled: true}, "
                 "zero_optimization: {stage: %d}, " SGD,
                 stage);
        programs_run *run = programs_train_config(3, config, "--epochs 2");
        programs_expect_success(run);
        assert_int_equal(run->steps, alone->steps);
        for (size_t i = 0; i < run->steps; i++)
            assert_near(run->loss[i], alone->loss[i], 0.01, 0);
        programs_expect_same_params(3);
        programs_free(run);
    }
    programs_free(alone);
}

/* Each share of the data goes through the stages; in the last update one has no samples. */
static void uneven_ranks_go_with_stages_of_a_pipeline(void **state)
{
    static const char config[] =
        "{train_batch_size: 130, train_micro_batch_size_per_gpu: [40, 25], "
        "gradient_accumulation_steps: 2, zero_optimization: {stage: 1}, "
        "pipeline: {stages: 2}, " SGD;
    programs_run *data = programs_train_config(2, config, "--epochs 2 -p 1");
    programs_run *grid = programs_train_config(4, config, "--epochs 2");
    programs_expect_success(data);
    programs_expect_success(grid);
    assert_int_equal(grid->steps, 16);
    assert_memory_equal(grid->loss, data->loss, sizeof grid->loss);
    programs_expect_same_params(4);
    programs_free(grid);
    programs_free(data);
}

static void ranks_that_end_sooner_are_told_and_joined(void **state)
{
    static const char join[] =
        "{train_micro_batch_size_per_gpu: 50, data_partition: [300, 500], " SGD,
                      shortest[] = "{train_micro_batch_size_per_gpu: 50, data_end: \"shortest\", "
                                   "data_partition: [300, 500], " SGD;
    programs_run *run = programs_train_config(2, join, "");
    programs_expect_success(run);
    assert_int_equal(run->steps, 10);
    programs_expect_same_params(2);
    programs_expect_output(run, "rank 0: 300 samples in micro-batches of 50: 6 updates an epoch\n"
                                "rank 1: 500 samples in micro-batches of 50: 10 updates an epoch\n"
                                "ranks that run out of data wait for the others (\"data_end\": "
                                "\"join\"); \"shortest\" would end an epoch after 6 updates\n"
                                "each epoch leaves out 200 of 1000 samples\n");
    programs_free(run);
    run = programs_train_config(2, shortest, "");
    programs_expect_success(run);
    assert_int_equal(run->steps, 6);
    programs_free(run);
}

static void shares_may_lie_together(void **state)
{
    static const char strided[] = "{train_micro_batch_size_per_gpu: [30, 20], " SGD,
                      together[] = "{train_micro_batch_size_per_gpu: [30, 20], data_split: "
                                   "\"contiguous\", " SGD;
    programs_run *a = programs_train_config(2, strided, "--max-steps 1"),
                 *b = programs_train_config(2, together, "--max-steps 1");
    programs_expect_success(a);
    programs_expect_success(b);
    assert_true(a->loss[0] != b->loss[0]);
    assert_near(a->loss[0], b->loss[0], 0.1, 0);
    programs_free(a);
    programs_free(b);
}

static void lists_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        const char *config, *error;
    } cases[] = {
        {"{train_micro_batch_size_per_gpu: [30, 20, 10], " SGD,
         "train_micro_batch_size_per_gpu lists 3 ranks, but there are 2, from ringrun; list one "
         "number for each rank"},
        {"{train_micro_batch_size_per_gpu: 30, data_partition: [10], " SGD,
         "data_partition must list one number for each of the 2 ranks (from ringrun)"},
        {"{train_micro_batch_size_per_gpu: 30, data_partition: [600, 401], " SGD,
         "data_partition lists 1001 samples, but the training set has 1000; list fewer, or write "
         "\"auto\""},
        {"{train_batch_size: 100, train_micro_batch_size_per_gpu: [30, 20], "
         "gradient_accumulation_steps: 3, " SGD,
         "train_batch_size 100 is not the sum of train_micro_batch_size_per_gpu, 50, times "
         "gradient_accumulation_steps 3\none of these changes makes them fit: "
         "gradient_accumulation_steps 2, or "
         "train_batch_size 150\n"},
        {"{train_micro_batch_size_per_gpu: [30, \"x\"], " SGD,
         "config.json:1:2: train_micro_batch_size_per_gpu must be a whole number"},
        {"{train_micro_batch_size_per_gpu: [30, 0], " SGD,
         "config.json:1:2: train_micro_batch_size_per_gpu must be from 1 to 2147483647, not 0"},
        {"{train_micro_batch_size_per_gpu: 30, data_end: \"never\", " SGD,
         "write one of join, shortest"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        programs_run *run = programs_train_config(2, cases[i].config, "");
        assert_int_equal(run->status, 1);
        programs_expect_output(run, cases[i].error);
        programs_free(run);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, files_tear_down)
#define COLOURED(name) cmocka_unit_test_setup_teardown(name, files_set_up, files_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(thirty_and_twenty_are_fifty),
        COLOURED(thirty_and_twenty_are_fifty_with_a_convolution_and_dropout),
        COLOURED(the_experiment_with_alexnet_runs),
        TEST(a_rank_without_samples_takes_part),
        TEST(a_rank_without_samples_takes_part_in_16_bits),
        TEST(uneven_ranks_go_with_stages_of_a_pipeline),
        TEST(ranks_that_end_sooner_are_told_and_joined),
        TEST(shares_may_lie_together),
        TEST(lists_that_do_not_fit_are_refused),
    };
    if (argc != 4)
        return 2;
    programs = (programs_paths){.bin = argv[1], .examples = argv[2], .shared = argv[3]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
