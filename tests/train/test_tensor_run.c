/* SPDX-License-Identifier: Apache-2.0
 * Tensor ranks as users start them: DeepSpeed's key, the option, and the messages about both.
 * Arguments: folder of the programs, docs/examples/mnist, folder with seeds/. */
#include "check.h"
#include "files.h"
#include "programs.h"

#include <stdio.h>
#include <string.h>

static int set_up(void **state)
{
    files_folder();
    files_dataset(1000, 300);
    return 0;
}

static void expect_losses(const programs_run *got, const programs_run *want)
{
    assert_int_equal(got->steps, want->steps);
    for (size_t i = 0; i < want->steps; i++)
        assert_near(got->loss[i], want->loss[i], 1e-5, 0);
}

static void the_key_and_the_option_share_layers(void **state)
{
    static const char one[] = "{train_batch_size: 64, optimizer: {type: \"SGD\"}}";
    static const char two[] = "{train_batch_size: 64, optimizer: {type: \"SGD\"}, "
                              "tensor_parallel: {autotp_size: 2}, wall_clock_breakdown: true}";
    programs_run *alone = programs_train_config(0, one, "");
    programs_run *key = programs_train_config(2, two, "");
    programs_expect_success(alone);
    programs_expect_success(key);
    expect_losses(key, alone);
    programs_expect_same_params(2);
    programs_expect_output(
        key,
        "tensor ranks: 2 ranks share 2 of 5 layers; rank 0 holds 109386 of 218058 parameters\n");
    programs_run *grid = programs_train_config(
        4, "{train_batch_size: 64, optimizer: {type: \"SGD\"}, dump_state: true}",
        "--model lenet5 --tp 2 -p 2");
    programs_run *pipe = programs_train_config(0, one, "--model lenet5");
    programs_expect_success(grid);
    expect_losses(grid, pipe);
    programs_expect_output(grid, "pipeline of 2 stages of 2 ranks");
    programs_expect_output(grid, "\nrank = (stage * 1 + share of the data) * 2 + tensor rank:\n"
                                 "  stage 0: share 0: 0 1\n  stage 1: share 0: 2 3\n");
    programs_expect_output(grid, "\ngroups of activations: 0 2, 1 3\n"
                                 "groups of tensor ranks: 0 1, 2 3\n");
    programs_free(grid);
    programs_free(pipe);
    programs_free(key);
    programs_free(alone);
}

static void check_tells_the_memory_of_a_share(void **state)
{
    programs_run *run = programs_train_config(0,
                                              "{train_batch_size: 64, optimizer: {type: \"SGD\"}}",
                                              "--tp 2 --check=4");
    programs_expect_success(run);
    programs_expect_output(run, "each of 2 tensor ranks computes a share of the layers; for one "
                                "tensor rank:\nmemory per rank in bytes, 2 ranks, 109386 "
                                "parameters");
    programs_free(run);
}

static void what_cannot_be_is_refused_once(void **state)
{
    static const struct {
        const char *settings, *options, *error;
    } cases[] = {
        {"", "--tp 4",
         "2 ranks (from ringrun) cannot be divided into groups of 4 tensor ranks; start a multiple "
         "of 4 ranks"},
        {", tensor_parallel: {autotp_size: 2, tp: {tp_size: 2}}", "",
         "tensor_parallel.tp is not supported yet by this version: use tensor_parallel.autotp_size "
         "instead"},
        {", train_micro_batch_size_per_gpu: 24", "--tp 2",
         "the number of ranks is 1, from ringrun: 2 in 1 stage of 2 tensor ranks"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char config[256];
        snprintf(config, sizeof config, "{train_batch_size: 64, optimizer: {type: \"SGD\"}%s}",
                 cases[i].settings);
        programs_run *run = programs_train_config(2, config, cases[i].options);
        assert_int_equal(run->status, 1);
        programs_expect_output(run, cases[i].error);
        const char *first = strstr(run->output, "ringtrain: ");
        assert_non_null(first);
        assert_null(strstr(first + 1, "ringtrain: "));
        programs_free(run);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, files_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(the_key_and_the_option_share_layers),
        TEST(check_tells_the_memory_of_a_share),
        TEST(what_cannot_be_is_refused_once),
    };
    if (argc != 4)
        return 2;
    programs = (programs_paths){.bin = argv[1], .examples = argv[2], .shared = argv[3]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
