/* SPDX-License-Identifier: Apache-2.0
 *
 * ringtrain: runs trainings from a DeepSpeed configuration file. Start one process for each rank
 * with ringrun, torchrun, mpirun or srun; a process without a launcher trains as a single rank.
 * This file parses the command line, and training.c runs the training.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "builtin.h"
#include "clock.h"
#include "config.h"
#include "export_command.h"
#include "foreign.h"
#include "gemm.h"
#include "numbers.h"
#include "output.h"
#include "report_command.h"
#include "training.h"

typedef struct command_line {
    run_options run;
    /* The option had no "=", so that the next word may be its value. */
    bool config_may_follow, rank_may_follow;
    const char *deepspeed_config, *accelerate_config;
    int accepted; /* receives the values of options that have no effect */
} command_line;

/* ---- Values -------------------------------------------------------------------------------- */

static void take_deepspeed(const args_given *given)
{
    command_line *line = given->out;
    line->run.deepspeed_given = true;
    line->config_may_follow = given->text == NULL;
    if (given->text != NULL)
        line->deepspeed_config = given->text;
}

static void take_check(const args_given *given)
{
    command_line *line = given->out;
    line->run.check = CHECK_HERE;
    if (given->text != NULL)
        args_whole(given);
}

static void take_local_rank(const args_given *given)
{
    command_line *line = given->out;
    line->run.local_rank_given = true;
    line->rank_may_follow = given->text == NULL;
    if (given->text != NULL)
        args_whole(given);
}

static void take_backend(const args_given *given)
{
    command_line *line = given->out;
    args_name(given);
    line->run.backend = given->text;
}

static void take_compat(const args_given *given)
{
    command_line *line = given->out;
    args_name(given);
    line->run.compat_ds_0_13 = true;
}

static void take_norm(const args_given *given)
{
    command_line *line = given->out;
    if (!pixel_norm_parse(given->text, &line->run.norm))
        args_refuse(given, "expected a mean and a standard deviation above 0 for each channel, "
                           "such as 0.1307/0.3081 or 0.5,0.5,0.5/0.5,0.5,0.5");
}

static void take_model(const args_given *given)
{
    const char *dot = strrchr(given->text, '.');
    bool known = dot != NULL && strcmp(dot, ".json") == 0;
    for (const model_builtin *builtin = model_builtins; builtin->name != NULL; builtin++)
        known |= strcmp(builtin->name, given->text) == 0;
    if (!known)
        args_refuse(given, "expected mlp, lenet5, alexnet, gpt or a FILE.json");
    args_text(given);
}

/* Prints the library that computes the layers, then executes ringinfo from the folder of this
 * program or from PATH. */
static void print_report(const args_given *given)
{
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "ringinfo");
    (void)given;
    printf("training\n  layers             by %s, in float32\n", gemm_library());
    fflush(stdout);
    if (length > 0) {
        path[length] = '\0';
        strcpy(strrchr(path, '/') + 1, "ringinfo");
        execl(path, path, (char *)NULL);
    }
    execlp("ringinfo", "ringinfo", (char *)NULL);
    fprintf(stderr, "ringtrain: --report: ringinfo is neither in this program's folder nor in "
                    "PATH\n");
    exit(EXIT_FAILURE);
}

static void take_device(const args_given *given)
{
    command_line *line = given->out;
    if (!trainer_parse_device(given->text, &line->run.device))
        args_refuse(given, "expected auto, cpu, cuda or cuda:N");
}

static void print_keys(const args_given *given)
{
    (void)given;
    config_print_keys(stdout);
    exit(EXIT_SUCCESS);
}

/* The names of the values of options, in the order of the values. */
static const char *const compats[] = {"ds-0.13", NULL},
                         *const backends[] = {"nccl", "gloo", "mpi", NULL},
                         *const unknown_keys[] = {"error", "warn", NULL},
                         *const policies[] = {"exact", "keep-global", NULL};

/* ---- The options --------------------------------------------------------------------------- */

#define AT(member) ARGS_AT(command_line, run.member)
static const args_row rows[] = {
    {.help = "The run:"},
    {"deepspeed_config", 0, "FILE", "DeepSpeed configuration (JSON)", args_text,
     ARGS_AT(command_line, deepspeed_config)},
    {"deepscale_config", .flags = OPTION_ALIAS},
    {"config_file", 0, "FILE",
     "accelerate's configuration (YAML or JSON), in place of a DeepSpeed configuration", args_text,
     ARGS_AT(command_line, accelerate_config)},
    {"data", 0, "DIR",
     "Folder of the data: MNIST's four files (raw or .gz), CIFAR-10's files, or a text (train.bin "
     "and val.bin, or input.txt); default: RING_DATA",
     args_text, AT(data)},
    {"normalize", 0, "MEAN,.../STD,...",
     "Normalize images to (byte / 255 - MEAN) / STD, with one MEAN and STD for all channels or one "
     "for each, such as 0.1307/0.3081",
     take_norm, ARGS_AT(command_line, run.norm)},
    {"model", 0, "NAME|FILE.json",
     "mlp: 784-256-64-10 with ReLU (default), lenet5, alexnet, gpt, or a list of layers",
     take_model, AT(model)},
    {"device", 0, "auto|cpu|cuda[:N]",
     "Device that computes the network: the CPU (default), GPU N (cuda alone: GPU 0), or GPU 0 if "
     "it can train the network and the CPU otherwise (auto)",
     take_device, ARGS_AT(command_line, run.device)},
    {"tf32", 0, NULL,
     "Let a GPU round the operands of matrix products to TF32, which is faster and keeps 10 bits "
     "of the mantissa",
     args_flag, AT(tf32)},
    {"loss", 0, "NAME",
     "mse on one-hot targets (default for images) or cross_entropy (default for "
     "text)",
     args_name, AT(loss), .names = loss_names},
    {"epochs", 0, "N", "Passes over the training set (default 1, or as many as --max-steps takes)",
     args_whole, AT(epochs), .least = 1, .most = 1000000},
    {"max-steps", 0, "N",
     "Stop after N updates, or after --epochs if that is given and comes first", args_whole,
     AT(max_steps), .least = 1, .most = INT_MAX},
    {"steps", 's', .flags = OPTION_ALIAS},
    {"eval-every", 0, "N",
     "Evaluate the test set after every N epochs and after the last one (default 1); 0: never",
     args_whole, AT(eval_every), .most = INT_MAX},
    {"batch_size", 'b', "N",
     "Samples in a micro-batch, counted over all ranks of a host, if the configuration does not "
     "set "
     "train_micro_batch_size_per_gpu",
     args_whole, AT(batch), .least = 1, .most = INT_MAX},
    {"batch_size_p_n", .flags = OPTION_ALIAS},
    {"check", 0, "RANKS",
     "Do not train; check the configuration, the model and, if given, the data, and print the "
     "memory "
     "that a rank needs",
     take_check, AT(check), .least = 1, .most = 65536, .flags = OPTION_ARG_OPTIONAL},
    {"seed", 0, "S", "Seed of the initial parameters and the sample order (default 0)", args_whole,
     AT(seed), .most = UINT32_MAX},
    {"pipeline-parallel-size", 'p', "N",
     "Stages to divide the layers into, each on its own ranks (default pipeline.stages)",
     args_whole, AT(stages), .least = 1, .most = 256},
    {"workers", 'j', "N",
     "Threads on each rank that prepare the next micro-batch while it computes the current one "
     "(default 0)",
     args_whole, AT(workers), .most = 256},
    {"tp", 0, "N",
     "Tensor ranks that share linear layers and attention (default tensor_parallel.autotp_size)",
     args_whole, AT(tensor_ranks), .least = 1, .most = 256},
    {"fp16", 0, NULL, "Use float16 if the configuration does not set fp16.enabled", args_flag,
     AT(fp16)},
    {"bf16", 0, NULL, "Use bfloat16 if the configuration does not set bf16.enabled", args_flag,
     AT(bf16)},
    {.help = "Output:"},
    {"metrics", 0, "FILE", "Write one line of JSON for each update (rank 0)", args_text,
     AT(report.metrics_path)},
    {"append-metrics", 0, NULL, "Append to the file of --metrics if it exists", args_flag,
     AT(report.append_metrics)},
    {"epoch-losses", 0, "FILE", "Write the mean loss of each epoch to one JSON object", args_text,
     AT(report.epoch_losses_path)},
    {"log-style", 0, "STYLE",
     "short (default); deepspeed: also a line of throughput; neox: lines begin with time and host, "
     "and each part of the time has its own line; brief: Rank[0]: Epoch 1, step …; torch: rank0, "
     "Epoch [1/6], Step […], …",
     args_name, AT(report.style), .names = log_style_names},
    {"monitor-every", 0, "K", "Print memory and CPU use of all ranks every K updates", args_whole,
     AT(events.monitor_every), .least = 1, .most = INT_MAX},
    {"trace", 0, "FILE",
     "Write a trace of all ranks in the first 20 updates, for chrome://tracing or Perfetto",
     args_text, AT(events.trace_path)},
    {"dump-params", 0, "FILE", "Write the final parameters to FILE.RANK, as safetensors", args_text,
     AT(dump_path)},
    {"report", 0, NULL, "Show the hardware of this machine and its use, as ringinfo does",
     .take = print_report},
    {.help = "Checkpoints:"},
    {"save", 0, "DIR",
     "Save to DIR/step-NNNNNNNN at each epoch's end, at the end, and after Ctrl-C or SIGTERM",
     args_text, AT(save_dir)},
    {"save-every", 0, "N", "Save every N updates instead of at each epoch's end", args_whole,
     AT(save_every), .least = 1, .most = INT_MAX},
    {"keep", 0, "N", "Keep the newest N checkpoints (default: all)", args_whole, AT(keep),
     .least = 1, .most = INT_MAX},
    {"resume", 0, "DIR|latest",
     "Resume from a checkpoint, or from the newest complete one in a folder; latest: from the "
     "folder of --save, or from the start if there is no checkpoint yet",
     args_text, AT(resume)},
    {"init", 0, "FILE.safetensors", "Start from the parameters in this file", args_text,
     AT(init_path)},
    {"config-keys", 0, NULL, "Print every known configuration key", .take = print_keys},
    {.help = "Compatibility with DeepSpeed:"},
    {"compat", 0, "ds-0.13",
     "Behave like DeepSpeed 0.13: no clipping by default, the first update at the optimizer's own "
     "rate, the same sample order in every epoch, log lines every 10 updates",
     take_compat, ARGS_AT(command_line, accepted), .names = compats},
    {"unknown-keys", 0, "warn|error", "Whether an unknown key is an error (default) or a warning",
     args_name, AT(warn_unknown), .names = unknown_keys},
    {"deepspeed", 0, "FILE", "Accepted, no effect; with FILE the same as --deepspeed_config FILE",
     take_deepspeed, .flags = OPTION_ARG_OPTIONAL},
    {"deepscale", .flags = OPTION_ALIAS},
    {"batch-policy", 0, "exact|keep-global",
     "If train_batch_size is not micro-batch * accumulation * ranks, fail (default) or choose an "
     "accumulation that fits",
     args_name, AT(policy), .names = policies},
    {"backend", 0, "nccl|gloo|mpi", "Accepted, no effect", take_backend,
     ARGS_AT(command_line, accepted), .names = backends},
    {"local_rank", 0, "N", "Accepted, no effect", take_local_rank, ARGS_AT(command_line, accepted),
     .most = INT_MAX, .flags = OPTION_ARG_OPTIONAL},
    {0},
};

/* ---- The command line ---------------------------------------------------------------------- */

/* Takes the value of "--deepspeed FILE" or "--local_rank N", if it is a word of its own. */
static int take_word(char **words, int count, void *out)
{
    command_line *line = out;
    long long rank;
    (void)count;
    foreign_word(words[0]);
    if (line->config_may_follow && line->deepspeed_config == NULL)
        line->deepspeed_config = words[0];
    else if (line->rank_may_follow && !number_whole(words[0], 0, INT_MAX, &rank))
        args_fail("--local_rank %s: expected a whole number from 0 to %d", words[0], INT_MAX);
    else if (!line->rank_may_follow)
        args_fail("unexpected argument \"%s\"; ringtrain takes only options", words[0]);
    line->config_may_follow = line->rank_may_follow = false;
    return 1;
}

static void check_checkpoints(const run_options *run_to)
{
    const bool latest = run_to->resume != NULL && strcmp(run_to->resume, "latest") == 0;
    if (run_to->save_dir == NULL && (run_to->save_every > 0 || run_to->keep > 0))
        args_fail("%s has no effect without --save DIR",
                  run_to->save_every > 0 ? "--save-every" : "--keep");
    if (latest && run_to->save_dir == NULL)
        args_fail("--resume latest needs --save DIR, where the checkpoints are");
    if (run_to->resume != NULL && !latest && run_to->init_path != NULL)
        args_fail("--init and --resume both set the parameters; give only one of them");
}

static void choose_config(command_line *line)
{
    if (line->deepspeed_config != NULL && line->accelerate_config != NULL)
        args_fail("--deepspeed_config and --config_file both name a configuration; give only one");
    if (line->deepspeed_config == NULL && line->accelerate_config == NULL)
        args_fail("no configuration: give --deepspeed_config FILE");
    if (line->deepspeed_config != NULL)
        foreign_config("--deepspeed_config", line->deepspeed_config);
    line->run.accelerate = line->accelerate_config != NULL;
    line->run.config_path = line->run.accelerate ? line->accelerate_config : line->deepspeed_config;
}

static void choose_data(run_options *run_to)
{
    if (run_to->report.append_metrics && run_to->report.metrics_path == NULL)
        args_fail("--append-metrics needs a file; give --metrics FILE");
    if (run_to->data == NULL)
        run_to->data = getenv("RING_DATA");
    if (run_to->data != NULL && run_to->data[0] == '\0')
        run_to->data = NULL;
    if (run_to->data == NULL && run_to->check == CHECK_NOTHING)
        args_fail("no data: give --data DIR or set RING_DATA");
    check_checkpoints(run_to);
}

/* All ranks have the same command line, so only the first rank reports a mistake in it. This asks
 * the launcher's variables, because a wrong command line ends the program before the ranks connect.
 */
static bool is_first_rank(void)
{
    static const char *const variables[] = {"RANK",     "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                            "PMI_RANK", "MV2_COMM_WORLD_RANK",  "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *rank = getenv(variables[i]);
        if (rank != NULL)
            return atoi(rank) == 0;
    }
    return true;
}

/* Commands other than training, by the first word. */
static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {{"export", export_command}, {"report", report_command}};

int main(int argc, char **argv)
{
    const args_program ringtrain = {
        "ringtrain",
        rows,
        NULL,
        "Trains a network on MNIST, CIFAR-10 or a text with a DeepSpeed configuration, on all "
        "ranks that the launcher started: "
        "ringrun -n 2 ringtrain --deepspeed_config FILE --data DIR"
        "\vringtrain export CHECKPOINT --out FILE.safetensors writes the parameters of a "
        "checkpoint to one file, and ringtrain report METRICS makes a page of a run's metrics; see "
        "their --help.\n\n"
        "Exit status: 0 trained and everything written (or checked without an error), 1 failed "
        "(configuration, data, training, output), 2 wrong use, 128 + signal after Ctrl-C or "
        "SIGTERM.",
        .take = take_word,
        .unknown = foreign_option,
        .quiet = !is_first_rank()};
    command_line line = {
        .run = {.model = "mlp", .loss = LOSS_KINDS, .eval_every = 1, .started = train_now()}};
    output_check_at_exit(EXIT_FAILURE);
    for (size_t i = 0; i < sizeof commands / sizeof *commands && argc > 1; i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    args_parse(&ringtrain, argc, argv, &line);
    choose_config(&line);
    choose_data(&line.run);
    return run(&line.run);
}
