/* SPDX-License-Identifier: Apache-2.0
 * Output before anything trains: --check, and words that belong to other programs.
 * Arguments: folder of the programs, docs/examples/mnist, folder with seeds/. */
#include "check.h"
#include "files.h"
#include "programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADAM "optimizer: {type: \"Adam\"}}"

static int set_up(void **state)
{
    files_folder();
    files_dataset(600, 100);
    return 0;
}

static programs_run *ringtrain(int ranks, const char *config, const char *options)
{
    files_write("config.json", config, strlen(config));
    return programs_train(ranks, "--deepspeed_config %s %s", files_path("config.json"), options);
}

/* The numbers of a line "stage parameters gradients states live activations total".
 * @param place  stage of the pipeline */
static void placed_line(const programs_run *run, int place, int stage, size_t numbers[6])
{
    char start[32];
    snprintf(start, sizeof start, "\n*     %d ", stage);
    const char *at = strstr(run->output, start);
    for (int i = 0; i < place && at != NULL; i++)
        at = strstr(at + 1, start);
    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(start), "%zu %zu %zu %zu %zu %zu", &numbers[0], &numbers[1],
                            &numbers[2], &numbers[3], &numbers[4], &numbers[5]),
                     6);
    assert_int_equal(numbers[5], numbers[0] + numbers[1] + numbers[2] + numbers[3] + numbers[4]);
}

static void stage_line(const programs_run *run, int stage, size_t numbers[6])
{
    placed_line(run, 0, stage, numbers);
}

/* The estimate for two ranks equals the bytes that two ranks report. */
static void the_estimate_is_what_is_allocated(void **state)
{
    for (int i = 0; i < 6; i++) {
        const int stage = 1 + i % 3;
        char config[200], line[160], data[600];
        size_t bytes[6];
        snprintf(
            config, sizeof config,
            "{train_batch_size: 64, bf16: {enabled: %s}, zero_optimization: {stage: %d}, " ADAM,
            i < 3 ? "false" : "true", stage);
        snprintf(data, sizeof data, "--model lenet5 --max-steps 1 --data %s", files_path(""));
        programs_run *trained = ringtrain(2, config, data);
        programs_run *checked = ringtrain(0, config, "--model lenet5 --check=2");
        programs_expect_success(trained);
        programs_expect_success(checked);
        assert_int_equal(checked->steps, 0);
        stage_line(checked, stage, bytes);
        snprintf(line, sizeof line,
                 "ZeRO stage %d: each rank holds %zu bytes of model state, and %zu of the buckets",
                 stage, bytes[0] + bytes[1] + bytes[2], bytes[3]);
        programs_expect_output(trained, line);
        if (stage == 3)
            programs_expect_output(trained, "\nZeRO stage 3 partitions 0 of 61706 parameters\n");
        programs_free(trained);
        programs_free(checked);
    }
}

/* A rank's allocated bytes, by memory_breakdown; samples and labels count as activations. */
static void expect_bytes(const programs_run *run, int rank, const size_t want[6])
{
    char start[48];
    size_t got[6];
    snprintf(start, sizeof start, "\nmemory of rank %d in bytes: ", rank);
    const char *at = strstr(run->output, start);
    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(start),
                            "parameters %zu, gradients %zu, optimizer's states %zu, live buckets "
                            "%zu, activations %zu, batch %zu",
                            &got[0], &got[1], &got[2], &got[3], &got[4], &got[5]),
                     6);
    got[4] += got[5];
    for (int i = 0; i < 5; i++)
        if (got[i] != want[i])
            fail_msg("rank %d, column %d: %zu, estimated %zu", rank, i, got[i], want[i]);
}

/* Stages and tensor ranks, too: activations are of min(p - stage, m) micro-batches. */
static void every_stage_takes_what_is_estimated(void **state)
{
    static const struct {
        const char *options, *bf16;
        int stages, zero;
    } cases[] = {{"-p 2", "false", 2, 1},
                 {"-p 4 --model lenet5", "true", 4, 0},
                 {"-p 2 --tp 2", "false", 2, 0},
                 {"--tp 2", "true", 1, 2}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char config[300], options[700];
        size_t bytes[6];
        snprintf(config, sizeof config,
                 "{train_batch_size: 96, gradient_accumulation_steps: 3, memory_breakdown: true, "
                 "bf16: {enabled: %s}, zero_optimization: {stage: %d}, " ADAM,
                 cases[i].bf16, cases[i].zero);
        snprintf(options, sizeof options, "%s --max-steps 1 --data %s", cases[i].options,
                 files_path(""));
        programs_run *trained = ringtrain(4, config, options);
        snprintf(options, sizeof options, "%s --check=4", cases[i].options);
        programs_run *checked = ringtrain(0, config, options);
        programs_expect_success(trained);
        programs_expect_success(checked);
        for (int rank = 0; rank < 4; rank++) {
            placed_line(checked, rank * cases[i].stages / 4, cases[i].zero, bytes);
            expect_bytes(trained, rank, bytes);
        }
        programs_free(trained);
        programs_free(checked);
    }
}

/* Stage 0 with Adam: 16 bytes a parameter; on one rank in every stage. */
static void any_number_of_ranks_is_estimated(void **state)
{
    static const char config[] =
        "{train_micro_batch_size_per_gpu: 8, zero_optimization: {stage: 3}, " ADAM;
    programs_run *one = ringtrain(0, config, "--check");
    programs_run *many = ringtrain(0, config, "--check=64");
    size_t bytes[6];
    programs_expect_success(one);
    stage_line(one, 3, bytes);
    assert_int_equal(bytes[0] + bytes[1] + bytes[2], 16 * 218058);
    programs_expect_success(many);
    stage_line(many, 3, bytes);
    /* the first tensor is split, a bias stays whole and so do all others, which are padded */
    assert_int_equal(bytes[0], 4 * (200704 / 64 + 256 + 17152));
    programs_expect_output(many, "train_batch_size .......................... 512\n");
    programs_expect_output(many, "memory per rank in bytes, 64 ranks, 218058 parameters");
    programs_expect_output(many, "checked, except for the data: no errors");
    programs_free(one);
    programs_free(many);
}

/* On all ranks alike, with the data if they are named. */
static void what_would_not_train_is_an_error(void **state)
{
    char wrong_data[] = "--check --data /nowhere";
    const struct {
        int ranks;
        const char *config, *options, *error;
    } cases[] = {
        {0, "{train_batch_size: 10, train_micro_batch_size_per_gpu: 3, optimiser: {}, " ADAM,
         "--check", "unknown key \"optimiser\"; did you mean \"optimizer\"?"},
        {0, "{train_batch_size: 65, train_micro_batch_size_per_gpu: 8, " ADAM, "--check=2",
         "the number of ranks is 2, from --check"},
        {2, "{train_batch_size: 65, " ADAM, "--check", "the number of ranks is 2, from ringrun"},
        {0, "{train_batch_size: 64, " ADAM, wrong_data, "/nowhere: no such folder"},
        {0, "{train_batch_size: 64, " ADAM, "--check --model /nowhere/m.json",
         "/nowhere/m.json: No such file"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        programs_run *run = ringtrain(cases[i].ranks, cases[i].config, cases[i].options);
        assert_int_equal(run->status, 1);
        programs_expect_output(run, cases[i].error);
        assert_null(strstr(run->output, "no errors"));
        programs_free(run);
    }
    char data[600];
    snprintf(data, sizeof data, "--check --data %s", files_path(""));
    programs_run *run = ringtrain(2, "{train_batch_size: 64, " ADAM, data);
    programs_expect_success(run);
    programs_expect_output(run, "checked: no errors");
    programs_expect_output(run, "steps_per_print ........................... 3\n");
    programs_free(run);
    run = ringtrain(0, "{train_batch_size: 64, " ADAM, "--check");
    programs_expect_output(run,
                           "steps_per_print ........................... a quarter of an epoch");
    programs_free(run);
}

/* As long as the run is; without data that is not known. */
static void an_automatic_schedule_ends_with_the_run(void **state)
{
    static const char config[] =
        "{train_batch_size: 60, scheduler: {type: \"WarmupDecayLR\", params: "
        "{total_num_steps: \"auto\"}}, " ADAM;
    static const struct {
        const char *options, *line;
    } cases[] = {
        {"--epochs 3 --data", "NOTE scheduler.params.total_num_steps: auto -> 30\n"},
        {"--epochs 3 --max-steps 7 --data", "NOTE scheduler.params.total_num_steps: auto -> 7\n"},
        {"--epochs 3 --data", "scheduler.params.total_num_steps .......... 30\n"},
        {NULL, "scheduler.params.total_num_steps .......... all updates of the run\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char options[600] = "--check";
        if (cases[i].options != NULL)
            snprintf(options, sizeof options, "--check %s %s", cases[i].options, files_path(""));
        programs_run *run = ringtrain(0, config, options);
        programs_expect_success(run);
        programs_expect_output(run, cases[i].line);
        programs_free(run);
    }
}

static void buckets_and_overlap_change_no_result(void **state)
{
    static const char *const keys[] = {"", "overlap_comm: false", "reduce_bucket_size: 100",
                                       "reduce_bucket_size: 5e8"};
    char data[600];
    double losses[COUNT_OF(keys)][9];
    snprintf(data, sizeof data, "--model lenet5 --data %s", files_path(""));
    for (int stage = 0; stage <= 2; stage += 2) {
        for (size_t i = 0; i < COUNT_OF(keys); i++) {
            char config[300];
            snprintf(config, sizeof config,
                     "{train_batch_size: 64, gradient_accumulation_steps: 2, zero_optimization: "
                     "{stage: %d, %s}, " ADAM,
                     stage, keys[i]);
            programs_run *run = ringtrain(2, config, data);
            programs_expect_success(run);
            assert_int_equal(run->steps, 10);
            memcpy(losses[i], run->loss, sizeof losses[i]);
            assert_memory_equal(losses[i], losses[0], sizeof losses[i]);
            programs_free(run);
        }
    }
}

static void words_of_other_programs_are_answered(void **state)
{
    static const struct {
        const char *options, *error;
    } cases[] = {
        {"train.py --deepspeed_config d.json", "train.py is a Python script, but ringtrain does "
                                               "not run scripts; write ringrun -n 2 ringtrain"},
        {"a.yml b.yml", "a.yml: ringtrain does not read the files of gpt-neox; give a DeepSpeed "
                        "file with --deepspeed_config or accelerate's YAML file with "
                        "--config_file, and a network with --model"},
        {"--deepspeed_config 6-7B.yml", "--deepspeed_config 6-7B.yml: a DeepSpeed file is JSON"},
        {"--config_file a.yaml --deepspeed_config d.json",
         "both name a configuration; give only one"},
        {"--module train", "does not run Python modules; write ringrun -n 2 ringtrain"},
        {"--num_gpus=2 train", "the ranks: ringrun --num_gpus N ringtrain"},
        {"--nproc-per-node 2", "the ranks: ringrun --nproc_per_node N ringtrain"},
        {"--hostfile hosts", "the ranks: ringrun --hostfile FILE ringtrain"},
        {"--lr 0.1", "set it in the configuration: optimizer.params.lr"},
        {"--weight_decay=0.1", "set it in the configuration: optimizer.params.weight_decay"},
        {"--queue_time=10", "it is an option of a platform for jobs; start ranks with ringrun"},
        {"--backend smddp", "--backend smddp: expected nccl or gloo or mpi"},
        {"-b 0", "expected a whole number from 1 to 2147483647"},
        {"--check=0", "--check=0: expected a whole number from 1 to 65536"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        programs_run *run = programs_train(0, "%s", cases[i].options);
        assert_int_equal(run->status, 2);
        programs_expect_output(run, cases[i].error);
        programs_free(run);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, files_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(the_estimate_is_what_is_allocated),       TEST(every_stage_takes_what_is_estimated),
        TEST(any_number_of_ranks_is_estimated),        TEST(what_would_not_train_is_an_error),
        TEST(an_automatic_schedule_ends_with_the_run), TEST(buckets_and_overlap_change_no_result),
        TEST(words_of_other_programs_are_answered),
    };
    if (argc != 4)
        return 2;
    programs = (programs_paths){.bin = argv[1], .examples = argv[2], .shared = argv[3]};
    unsetenv("RING_DATA");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
