/* SPDX-License-Identifier: Apache-2.0
 * Files that DeepSpeed's users come with: configurations, launch lines and scripts, taken as they
 * stand from documents that may lie beside the source tree (folder seeds/). Where the document
 * starts a Python script, ringtrain stands in its place. Arguments: folder of the programs,
 * docs/examples/mnist, folder with seeds/. */
#include "check.h"
#include "files.h"
#include "programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRAIN "ringtrain --data . --max-steps 2 "

static int set_up(void **state)
{
    files_folder();
    files_dataset(1000, 200);
    return 0;
}

/* ---- Documents ----------------------------------------------------------------------------- */

static char *copy(const char *begin, const char *end)
{
    assert_non_null(end);
    char *text = strndup(begin, (size_t)(end - begin));
    assert_non_null(text);
    return text;
}

/* The code block, between lines of three backquotes, that holds @p marker. */
static char *block_with(const char *text, const char *marker)
{
    const char *at = strstr(text, marker), *begin = at;
    assert_non_null(at);
    while (strncmp(begin, "```", 3) != 0) {
        assert_true(begin > text);
        begin--;
    }
    return copy(strchr(begin, '\n') + 1, strstr(at, "```"));
}

/* The line that holds @p marker. */
static char *line_with(const char *text, const char *marker)
{
    const char *at = strstr(text, marker), *begin = at;
    assert_non_null(at);
    while (begin > text && begin[-1] != '\n')
        begin--;
    return copy(begin, strchr(at, '\n'));
}

/* Writes the block with @p marker of a document to a file of the test's folder. */
static void write_block(const char *number, const char *marker, const char *name)
{
    char *text = programs_document(number), *block = block_with(text, marker);
    files_write(name, block, strlen(block));
    free(block);
    free(text);
}

static void write_line(const char *number, const char *marker, const char *name)
{
    char *text = programs_document(number), *line = line_with(text, marker);
    files_write(name, line, strlen(line));
    free(line);
    free(text);
}

/* ---- Runs ---------------------------------------------------------------------------------- */

/* In the test's folder, with the programs in PATH. */
static programs_run *shell(const char *command)
{
    return programs_shell("cd %s && PATH=%s:$PATH && { %s ; } 2>&1", files_path(""), programs.bin,
                          command);
}

static void expect_training(const char *command)
{
    programs_run *run = shell(command);
    programs_expect_success(run);
    programs_expect_output(run, "test accuracy 0.");
    programs_free(run);
}

static void expect_refusal(const char *command, const char *text)
{
    programs_run *run = shell(command);
    if (run->status == 0)
        fail_msg("%s was not refused:\n%s", command, run->output);
    programs_expect_output(run, text);
    assert_null(strstr(run->output, "test accuracy"));
    programs_free(run);
}

/* ---- 000: MNIST on two nodes --------------------------------------------------------------- */

#define DEEPS "\"train_micro_batch_size_per_gpu\": 64"
#define PBS \
    "< $PBS_NODEFILE\n\nsource /public/software/profile.d/cuda11.6_cudnn8.9.sh\nsource " \
    "/public/software/profile.d/compiler_gnu-7.2.0.sh\nconda"
/* Paths of another machine, its modules, and the script. */
#define AT_HOME \
    "sed -e 's#/public/home/jiangy6/yezhr7/Deepspeed-test/##g' -e '/^source /d' -e '/^conda /d' " \
    "-e 's#^ROOT=.*#ROOT=#' -e 's#\"Deepspeed_test.py\"#" TRAIN "#' -e 's#python " \
    "${ROOT}\"pip_test.py\"#" TRAIN "#' "

static void deeps_trains_on_any_ranks(void **state)
{
    write_block("000", DEEPS, "deeps.json");
    expect_training(TRAIN "--deepspeed_config deeps.json");
    expect_training("ringrun -n 2 " TRAIN "--deepspeed_config deeps.json");
    expect_training("ringrun -n 4 " TRAIN "--deepspeed_config deeps.json --local_rank=0");
}

static void the_pbs_script_names_hosts_and_starts_ranks(void **state)
{
    write_block("000", DEEPS, "deeps.json");
    write_block("000", PBS, "pbs.sh");
    expect_training("echo localhost > nodes; export PBS_NODEFILE=nodes; " AT_HOME
                    "-e 's/^deepspeed /ringrun /' pbs.sh > own.sh && bash own.sh");
    programs_run *run = shell("printf 'n1\\nn2\\n' > nodes; export PBS_NODEFILE=nodes; " AT_HOME
                              "-e 's/^deepspeed /ringrun --dry-run /' pbs.sh > own.sh && bash "
                              "own.sh && cat hosts.txt");
    programs_expect_success(run);
    programs_expect_output(run, "# rank 1 of 2 on n2");
    programs_expect_output(run, "n1 slots=1\nn2 slots=1");
    programs_free(run);
    expect_refusal("ringrun -n 2 Deepspeed_test.py --deepspeed_config deeps.json",
                   "ringtrain replaces DeepSpeed training scripts: ringrun -n N ringtrain "
                   "--deepspeed_config FILE --data DIR");
}

static void the_pipeline_block_trains(void **state)
{
    char *text = programs_document("000"), *deeps = block_with(text, DEEPS),
         *pipeline = block_with(text, "\"type\": \"simple\""), *end = strrchr(deeps, '}');
    assert_non_null(end);
    *end = '\0';
    char config[4096];
    const int length = snprintf(config, sizeof config, "%s, %s}", deeps, pipeline);
    files_write("pipeline.json", config, (size_t)length);
    free(pipeline);
    free(deeps);
    free(text);
    expect_training("ringrun -n 2 " TRAIN "--deepspeed_config pipeline.json");
}

static void write_mpi_script(void)
{
    write_block("000", DEEPS, "deeps.json");
    write_block("000", "mpirun -np 2", "mpi.sh");
}

/* ringrun knows the options of mpirun. */
static void the_mpirun_line_starts_ranks(void **state)
{
    write_mpi_script();
    files_write("hosts.txt", "localhost slots=1\n", 18);
    expect_training("{ " AT_HOME "-n -e '/^mpirun/,$ s/^mpirun/ringrun/p; /^\t/p' mpi.sh; } > "
                    "own.sh && bash own.sh");
}

static void the_mpirun_line_starts_ranks_by_open_mpi(void **state)
{
    write_mpi_script();
    programs_run *version = shell("mpirun --version");
    const bool there = strstr(version->output, "Open MPI") != NULL;
    programs_free(version);
    if (!there) {
        skip_because("no mpirun of Open MPI");
    }
    expect_training("echo localhost slots=2 > hosts.txt; export "
                    "ASAN_OPTIONS=detect_leaks=0 " /* libpmix's */
                    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                    "OMPI_MCA_rmaps_base_oversubscribe=1; " AT_HOME
                    "-n -e '/^mpirun/,$ p' mpi.sh > own.sh && bash own.sh");
}

/* ---- 001: batch sizes ---------------------------------------------------------------------- */

#define HUNDRED_44 "\"train_batch_size\": 144"

/* The document's line, with ringtrain for its script and ringrun for its launcher. */
static char *pretrain_line(const char *launcher, const char *options)
{
    static char command[512];
    write_block("001", HUNDRED_44, "ds_config.json");
    write_line("001", launcher, "line");
    snprintf(command, sizeof command,
             "sed -e 's/torchrun\\|deepspeed /ringrun /' -e 's/deepspeed_pretrain.py/" TRAIN
             "--deepspeed_config ds_config.json %s/' line > own.sh && bash own.sh",
             options);
    return command;
}

static void one_rank_makes_the_pretraining_batch(void **state)
{
    programs_run *run = shell(pretrain_line("deepspeed --num_gpus=1", ""));
    programs_expect_success(run);
    programs_expect_output(run, "NOTE CUDA_VISIBLE_DEVICES has no effect: ranks run on CPUs\n");
    programs_expect_output(run, "test accuracy 0.");
    programs_free(run);
}

static void two_ranks_do_not_and_are_told_what_would(void **state)
{
    static const char *const launchers[] = {"torchrun --nproc_per_node=2",
                                            "deepspeed --num_gpus=2"};
    for (size_t i = 0; i < COUNT_OF(launchers); i++) {
        expect_refusal(
            pretrain_line(launchers[i], ""),
            "Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu "
            "* gradient_acc_step * world_size 144 != 24 * 6 * 2\none of these changes makes them "
            "fit: "
            "gradient_accumulation_steps 3, or train_batch_size 288, or 1 rank\nthe number of "
            "ranks is 2, from ringrun");
        expect_training(pretrain_line(launchers[i], "--batch-policy=keep-global"));
    }
}

/* "| … | 64 | 8 | 2 | 4 GPUs |": batch, micro-batch, accumulation. */
static programs_run *train_row(const char *text, const char *name, int ranks)
{
    char *line = line_with(text, name);
    int batch, micro, accumulation;
    char config[300];
    const char *numbers = strchr(line + 1, '|');
    assert_non_null(numbers);
    assert_int_equal(sscanf(numbers, "| %d | %d | %d |", &batch, &micro, &accumulation), 3);
    const int length = snprintf(config, sizeof config,
                                "{train_batch_size: %d, train_micro_batch_size_per_gpu: %d, "
                                "gradient_accumulation_steps: %d, optimizer: {type: \"AdamW\", "
                                "params: {lr: 1e-4, eps: 1e-7, weight_decay: 0.01}}}",
                                batch, micro, accumulation);
    free(line);
    files_write("row.json", config, (size_t)length);
    programs_run *run = programs_train(ranks, "--deepspeed_config %s --data %s --max-steps 10",
                                       files_path("row.json"), files_path(""));
    programs_expect_success(run);
    return run;
}

static void the_tables_rows_take_the_same_steps(void **state)
{
    char *text = programs_document("001");
    programs_run *one = train_row(text, "| 单机单卡 ", 1);
    programs_run *four = train_row(text, "| 单机多卡 ", 4);
    programs_run *eight = train_row(text, "| 多机多卡 ", 8);
    assert_int_equal(one->steps, 10);
    for (size_t i = 0; i < one->steps; i++) {
        assert_near(four->loss[i], one->loss[i], 1e-5, 0);
        assert_near(eight->loss[i], one->loss[i], 1e-5, 0);
    }
    programs_free(one);
    programs_free(four);
    programs_free(eight);
    free(text);
}

/* ---- 002: any batch and data a rank -------------------------------------------------------- */

/* Its numbers, on MNIST. That they make the steps of a batch of 50 is tested beside (uneven). */
static void thirty_and_twenty_thousand_samples_train(void **state)
{
    static const char config[] =
        "{train_micro_batch_size_per_gpu: [30, 20], data_partition: [30000, 20000], optimizer: "
        "{type: \"Adam\", params: {lr: 1e-3}}}";
    const char *mnist = programs_mnist();
    if (mnist == NULL) {
        skip_because("no MNIST; set RING_DATA to the folder of its files");
    }
    free(programs_document("002"));
    files_write("uneven.json", config, strlen(config));
    programs_run *run = programs_train(2, "--deepspeed_config %s --data %s --max-steps 20",
                                       files_path("uneven.json"), mnist);
    programs_expect_success(run);
    assert_true(run->loss[19] < run->loss[0]);
    programs_expect_output(run,
                           "rank 0: 30000 samples in micro-batches of 30: 1000 updates an epoch\n"
                           "rank 1: 20000 samples in micro-batches of 20: 1000 updates an epoch\n"
                           "each epoch leaves out 10000 of 60000 samples\n");
    programs_free(run);
}

/* ---- 003: a platform ----------------------------------------------------------------------- */

static void the_manuals_notation_is_refused_line_by_line(void **state)
{
    write_block("003", "\"stage\": [0|1|2|3]", "schema");
    write_block("003", "\"device\": \"[cpu|nvme]\"", "offload");
    expect_refusal(
        "(echo {; cat schema; echo }) > z.json; ringtrain --check --deepspeed_config "
        "z.json",
        "z.json:3:14: `[0|1|2|3]` is a list of choices from the manual; write one of 0, 1, "
        "2, 3\nz.json:4:29: `[true|false]` is a list of choices from the manual; write one "
        "of true, false\n");
    expect_refusal("ringtrain --check --deepspeed_config z.json",
                   "z.json:11:9: `...` stands for an omission");
    expect_refusal("ringtrain --check --deepspeed_config z.json",
                   "z.json:24:5: a comma is missing before this");
    expect_refusal(
        "(echo '{\"zero_optimization\": {'; sed '/bf16/,$d' offload; echo '}}') > b.json; "
        "ringtrain --check --deepspeed_config b.json",
        "b.json:3:16: `[cpu|nvme]` is a list of choices from the manual; write one of cpu, "
        "nvme\nb.json:5:19: `[true|false]` is");
    expect_refusal("(echo {; sed -n '/\"bf16\"/,$p' offload; echo }) > b.json; ringtrain --check "
                   "--deepspeed_config b.json",
                   "b.json:3:5: unknown key \"bf16.enable\"; did you mean \"bf16.enabled\"?");
}

static void the_platforms_variables_start_ranks(void **state)
{
    static const struct {
        const char *marker, *places;
    } cases[] = {
        {"export DC_DL_CONFIG='{\"framework\":\"pytorch\",\"worker\": {\"count\":2,\"gpus\":1}}'",
         "# rank 0 of 1 on localhost"},
        {"export DC_DL_CONFIG='{\"framework\":\"pytorch\",\"worker\": {\"count\":2,\"gpus\":8}}'",
         "# rank 7 of 8 on localhost"},
        {"export DC_DL_CONFIG='{\"name\":\"task\"", "# rank 0 of 1 on localhost"},
    };
    write_block("000", DEEPS, "deeps.json");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        write_line("003", cases[i].marker, "line");
        programs_run *run = shell(". ./line; ringrun --dry-run true");
        programs_expect_success(run);
        programs_expect_output(run, cases[i].places);
        programs_free(run);
    }
    expect_training(". ./line; ringrun " TRAIN "--deepspeed_config deeps.json");
}

/* WORLD_SIZE counts nodes there, and RANK numbers them: two ringruns, as on two nodes. */
static void nodes_numbered_by_the_platform_train_together(void **state)
{
    write_block("000", DEEPS, "deeps.json");
    expect_training(
        "head -c 32 /dev/urandom > secret; chmod 600 secret; export RING_SECRET_FILE=$PWD/secret "
        "MASTER_PORT=$(ringrun -n 1 sh -c 'echo $MASTER_PORT') "
        "RING_ADDR=127.0.0.1 MASTER_ADDR=127.0.0.1 WORLD_SIZE=2; RANK=1 ringrun "
        "--nproc_per_node 1 " TRAIN "--deepspeed_config deeps.json & RANK=0 ringrun "
        "--nproc_per_node 1 " TRAIN "--deepspeed_config deeps.json && wait $!");
}

static void workers_become_hosts(void **state)
{
    free(programs_document("003"));
    programs_run *run = shell("ALL_WORKERS=\"'10.42.3.208','10.42.3.209'\" ringrun --hostfile "
                              "env:ALL_WORKERS --dry-run true; printf 'h1 slots=1\\nh2 slots=1\\n' "
                              "> hostfilexr; DLTS_HOSTFILE=hostfilexr ringrun --dry-run true");
    programs_expect_success(run);
    programs_expect_output(run, "# rank 1 of 2 on 10.42.3.209");
    programs_expect_output(run, "# rank 1 of 2 on h2");
    programs_free(run);
}

static void the_models_of_gpt_neox_are_refused(void **state)
{
    write_block("003", "./deepy.py train.py ./configs/6-7B.yml", "neox");
    expect_refusal("sed -n 's#.*deepy.py train.py \\(.*\\)\"$#ringrun -n 1 ringtrain \\1#p' neox > "
                   "own.sh && grep -q local_setup own.sh && bash own.sh",
                   "./configs/6-7B.yml: ringtrain does not read the files of gpt-neox; give a "
                   "DeepSpeed file with --deepspeed_config");
    expect_refusal("ringrun -n 1 ./deepy.py train.py ./configs/6-7B.yml",
                   "ringtrain replaces DeepSpeed training scripts");
}

static void the_scripts_options_are_known(void **state)
{
    char *text = programs_document("003");
    static const char *const options[] = {"'--data'", "'-b', '--batch_size_p_n'",
                                          "'-j', '--workers'", "'--epochs'", "--step=20000"};
    for (size_t i = 0; i < COUNT_OF(options); i++)
        assert_non_null(strstr(text, options[i]));
    free(text);
    static const char config[] = "{optimizer: {type: \"SGD\"}}";
    files_write("open.json", config, strlen(config));
    programs_run *run = shell("ringrun -n 2 ringtrain --deepspeed_config open.json --data . -b 256 "
                              "-j 4 --epochs 2 --step=3 --backend gloo");
    programs_expect_success(run);
    programs_expect_output(run, "train_micro_batch_size_per_gpu ............ 128\n");
    assert_null(strstr(run->output, "--workers has no effect"));
    programs_expect_output(run,
                           "NOTE --backend has no effect: ranks communicate through libring\n");
    programs_free(run);
    expect_refusal("ringrun -n 2 ringtrain --deepspeed_config open.json --data . -b 255",
                   "--batch_size 255 is for all ranks of this host, which divide the data into 2 "
                   "parts; give a multiple");
}

/* ---- 004: Hugging Face --------------------------------------------------------------------- */

#define AUTO "\"stage3_prefetch_bucket_size\": \"auto\""

static void auto_is_filled_in(void **state)
{
    write_block("004", AUTO, "ds_config.json");
    expect_training("ringrun -n 2 " TRAIN "--deepspeed_config ds_config.json");
    programs_run *run = shell("ringtrain --check=4 --deepspeed_config ds_config.json");
    programs_expect_success(run);
    programs_expect_output(run, "NOTE train_batch_size: auto -> 8\n");
    programs_expect_output(run,
                           "NOTE zero_optimization.reduce_bucket_size: auto -> 65536\n"
                           "NOTE zero_optimization.stage3_prefetch_bucket_size: auto -> 58982\n"
                           "NOTE zero_optimization.stage3_param_persistence_threshold: auto -> "
                           "2560\n");
    programs_expect_output(run, "train_micro_batch_size_per_gpu ............ 2\n");
    programs_expect_output(run, "gradient_accumulation_steps ............... 1\n");
    programs_expect_output(run, "gradient_clipping ......................... 1.0 ");
    programs_expect_output(run, "fp16.enabled .............................. false ");
    programs_expect_output(run, "train_batch_size .......................... 8\n");
    programs_expect_output(run, "\n*     3 ");
    programs_free(run);
}

static void accelerates_file_starts_and_trains(void **state)
{
    write_block("004", "compute_environment: LOCAL_MACHINE", "config.yaml");
    expect_training("ringrun --config_file config.yaml " TRAIN "--config_file config.yaml");
    write_line("004", "accelerate launch --config_file", "line");
    expect_refusal("sed 's/accelerate launch/ringrun/' line > own.sh && bash own.sh",
                   "--module train: ringrun starts programs, not Python modules; "
                   "write ringrun --config_file config.yaml ringtrain --config_file config.yaml "
                   "--data DIR");
}

static void deepspeeds_lines_are_answered(void **state)
{
    static const struct {
        const char *line, *answer;
    } cases[] = {
        {"deepspeed --localhost:0,2,3,4 hf_trainer.py",
         "unknown option '--localhost:0,2,3,4'; did you mean '--include localhost:0,2,3,4'?"},
        {"deepspeed --module hf_trainer",
         "write ringrun -n N ringtrain --deepspeed_config FILE --data DIR"},
        {"deepspeed hf_trainer.py", "ringtrain replaces DeepSpeed training scripts"},
        {"deepspeed --num_gpus 2 hf_trainer.py", "ringtrain replaces DeepSpeed training scripts"},
        {"deepspeed --no_local_rank hf_trainer.py",
         "ringtrain replaces DeepSpeed training scripts"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        write_line("004", cases[i].line, "line");
        expect_refusal("sed 's/^deepspeed/ringrun/' line > own.sh && bash own.sh", cases[i].answer);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, files_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(deeps_trains_on_any_ranks),
        TEST(the_pbs_script_names_hosts_and_starts_ranks),
        TEST(the_pipeline_block_trains),
        TEST(the_mpirun_line_starts_ranks),
        TEST(the_mpirun_line_starts_ranks_by_open_mpi),
        TEST(one_rank_makes_the_pretraining_batch),
        TEST(two_ranks_do_not_and_are_told_what_would),
        TEST(the_tables_rows_take_the_same_steps),
        TEST(thirty_and_twenty_thousand_samples_train),
        TEST(the_manuals_notation_is_refused_line_by_line),
        TEST(the_platforms_variables_start_ranks),
        TEST(nodes_numbered_by_the_platform_train_together),
        TEST(workers_become_hosts),
        TEST(the_models_of_gpt_neox_are_refused),
        TEST(the_scripts_options_are_known),
        TEST(auto_is_filled_in),
        TEST(accelerates_file_starts_and_trains),
        TEST(deepspeeds_lines_are_answered),
    };
    if (argc != 4)
        return 2;
    programs = (programs_paths){.bin = argv[1], .examples = argv[2], .shared = argv[3]};
    static const char *const strangers[] = {"RANK",         "WORLD_SIZE",    "LOCAL_RANK",
                                            "PBS_NODEFILE", "DLTS_HOSTFILE", "DC_DL_CONFIG"};
    for (size_t i = 0; i < COUNT_OF(strangers); i++)
        unsetenv(strangers[i]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
