/* SPDX-License-Identifier: Apache-2.0
 * Runs that are stopped, killed or run out of disk, and go on: the program as its users start it.
 * RING_TEST_KILLS: kills while saving (5).
 * Arguments: folder of the programs, docs/examples/mnist, folder with seeds/. */
#include "check.h"
#include "files.h"
#include "programs.h"

#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <random.h>
#include <stop_signals.h>

/* Everything that a run carries along: moments, a schedule, accumulation, dropout. */
#define CONFIG_WITH(more) \
    "{train_batch_size: 64, gradient_accumulation_steps: 2, optimizer: {type: \"AdamW\", params: " \
    "{weight_decay: 0.1}}, scheduler: {type: \"WarmupDecayLR\", params: {warmup_max_lr: 0.01, " \
    "warmup_num_steps: 5, total_num_steps: 60}}, zero_optimization: {stage: 2}, " \
    "steps_per_print: 1000000, " more "}"
#define CONFIG CONFIG_WITH("")

/* The rate never ends, so that each update counts. */
#define STEADY_WITH(more) \
    "{train_batch_size: 64, gradient_accumulation_steps: 2, optimizer: {type: \"AdamW\", params: " \
    "{weight_decay: 0.1}}, zero_optimization: {stage: 2}, steps_per_print: 1000000" more "}"

#define LAYERS \
    "{name: \"small\", input: [784], layers: [{type: \"linear\", features: 32}, {type: " \
    "\"relu\"}, " \
    "{type: \"dropout\"}, {type: \"linear\", features: 10}]}"

/* Enough to be written for a while. */
#define WIDE \
    "{name: \"wide\", input: [784], layers: [{type: \"linear\", features: 300}, {type: " \
    "\"dropout\"}, {type: \"linear\", features: 10}]}"

static int set_up(void **state)
{
    files_folder();
    files_dataset(1000, 100);
    files_write("config.json", CONFIG, strlen(CONFIG));
    files_write("layers.json", LAYERS, strlen(LAYERS));
    files_write("wide.json", WIDE, strlen(WIDE));
    return 0;
}

/* In the test's folder, so that paths are short. */
static programs_run *shell(const char *launch, const char *model, const char *options)
{
    return programs_shell("cd %s && PATH=%s:$PATH && %s ringtrain --deepspeed_config config.json "
                          "--data . --loss cross_entropy --model %s.json %s 2>&1",
                          files_path(""), programs.bin, launch, model, options);
}

static programs_run *run_good(const char *launch, const char *model, const char *options)
{
    programs_run *run = shell(launch, model, options);
    programs_expect_success(run);
    return run;
}

static void train(const char *launch, const char *model, const char *options)
{
    programs_free(run_good(launch, model, options));
}

static void expect_status(const programs_run *run, int status)
{
    if (run->status != status)
        fail_msg("exit status %d:\n%s", run->status, run->output);
}

static void expect_failure(const char *launch, const char *options, int status, const char *text)
{
    programs_run *run = shell(launch, "layers", options);
    expect_status(run, status);
    programs_expect_output(run, text);
    programs_free(run);
}

static void expect_same_file(const char *name, const char *other)
{
    size_t bytes, other_bytes;
    char *data = files_read(files_path(name), &bytes);
    char *other_data = files_read(files_path(other), &other_bytes);
    if (data == NULL || other_data == NULL)
        fail_msg("%s or %s is not there", name, other);
    assert_int_equal(bytes, other_bytes);
    assert_memory_equal(data, other_data, bytes);
    free(data);
    free(other_data);
}

static bool is_there(const char *name)
{
    return access(files_path(name), F_OK) == 0;
}

/* ---- Going on ------------------------------------------------------------------------------ */

/* Losses of updates @p from to @p to in two files of metrics, up to the order of sums. */
static void expect_near_losses(const char *name, const char *other_name, int from, int to)
{
    size_t bytes;
    char *first = files_read(files_path(name), &bytes);
    char *second = files_read(files_path(other_name), &bytes);
    char step[32];
    snprintf(step, sizeof step, "{\"step\": %d,", from);
    const char *begin = strstr(first, step);
    assert_non_null(begin);
    for (int u = from; u <= to; u++) {
        double loss, other;
        assert_int_equal(sscanf(begin, "{\"step\": %*d, \"epoch\": %*d, \"loss\": %lf", &loss), 1);
        char *mark = strstr(second, "{\"step\":");
        assert_non_null(mark);
        assert_int_equal(sscanf(mark, "{\"step\": %*d, \"epoch\": %*d, \"loss\": %lf", &other), 1);
        assert_near(other, loss, 1e-5, 0);
        begin = strstr(begin + 1, "{\"step\":"); /* there are lines of epochs, too */
        memcpy(mark, "{\"done\":", 8);
    }
    free(first);
    free(second);
}

/* 16 updates an epoch; the run ends once within an epoch and once at its end. */
static void expect_resumed_the_same(const char *config)
{
    files_write("config.json", config, strlen(config));
    train("ringrun -n 2", "layers", "--max-steps 40 --dump-params whole");
    train("ringrun -n 2", "layers", "--max-steps 7 --save s");
    train("ringrun -n 2", "layers", "--max-steps 32 --save s --resume latest");
    programs_run *run = run_good("ringrun -n 2", "layers",
                                 "--max-steps 40 --resume s --dump-params resumed");
    programs_expect_output(run, "resumed from s/step-00000032: update 32, epoch 2");
    programs_free(run);
    expect_same_file("whole.0", "resumed.0");
    expect_same_file("whole.1", "resumed.1");
    assert_true(is_there("s/step-00000007/manifest.json"));
    assert_true(is_there("s/step-00000016/manifest.json")); /* the epoch's end */
}

static void a_resumed_run_is_the_same_bit_for_bit(void **state)
{
    expect_resumed_the_same(CONFIG);
}

static void so_is_one_of_samples_as_they_are_stored(void **state)
{
    expect_resumed_the_same(CONFIG_WITH("sampler_shuffle: false, sampler_drop_last: true"));
}

/* The scale goes up and down all the time. */
static void so_is_one_in_16_bits(void **state)
{
    expect_resumed_the_same(CONFIG_WITH(
        "fp16: {enabled: true, initial_scale_power: 22, loss_scale_window: 3, hysteresis: 2}"));
}

#define PIPE_WITH(more) \
    "{train_batch_size: 64, gradient_accumulation_steps: 2, optimizer: {type: \"AdamW\"}, " \
    "pipeline: {stages: 2}, steps_per_print: 1000000, " more "}"

static void so_is_one_of_two_stages(void **state)
{
    expect_resumed_the_same(PIPE_WITH(""));
}

#define TENSOR_WITH(more) CONFIG_WITH("tensor_parallel: {autotp_size: 2}, " more)

static void so_is_one_of_tensor_ranks(void **state)
{
    expect_resumed_the_same(TENSOR_WITH(
        "fp16: {enabled: true, initial_scale_power: 22, loss_scale_window: 3, hysteresis: 2}"));
}

static void any_tensor_ranks_go_on_from_any_others(void **state)
{
    static const char config[] = TENSOR_WITH(""),
                      still[] = "{train_batch_size: 64, optimizer: {type: \"SGD\", params: "
                                "{lr: 0}}, tensor_parallel: {autotp_size: 2}}";
    files_write("config.json", config, strlen(config));
    train("", "layers", "--tp 1 --max-steps 20 --metrics whole");
    train("ringrun -n 2", "layers", "--max-steps 9 --save s");
    train("", "layers", "--tp 1 --max-steps 14 --save s --resume latest --metrics one");
    programs_run *run = run_good("ringrun -n 4", "layers",
                                 "--tp 4 --max-steps 20 --save s --resume latest --metrics four "
                                 "--dump-params dump");
    programs_expect_output(run, "NOTE --resume: tensor_parallel.autotp_size is 4, was 1");
    expect_near_losses("whole", "one", 10, 14);
    expect_near_losses("whole", "four", 15, 20);
    programs_free(run);
    run = programs_shell("cd %s && %s/ringtrain export s --out e", files_path(""), programs.bin);
    programs_expect_success(run);
    programs_free(run);
    expect_same_file("e", "dump.0");
    files_write("config.json", still, strlen(still));
    train("ringrun -n 2", "layers", "--max-steps 1 --init e --dump-params still");
    expect_same_file("e", "still.1");
}

/* Two stages and none compute the same bits, so their files are the same ones, too. */
static void pipelines_and_single_ranks_exchange_checkpoints(void **state)
{
    files_write("config.json", PIPE_WITH(""), strlen(PIPE_WITH("")));
    train("", "layers", "-p 1 --max-steps 20 --save one --dump-params whole");
    train("ringrun -n 2", "layers", "--max-steps 9 --save two");
    train("", "layers", "-p 1 --max-steps 14 --save two --resume latest");
    train("ringrun -n 2", "layers", "--max-steps 20 --save two --resume latest --dump-params two");
    expect_same_file("whole.0", "two.0");
    expect_same_file("whole.0", "two.1");
    for (int i = 0; i < 2; i++) {
        programs_run *run = programs_shell("cd %s && %s/ringtrain export %s --out %s.safetensors",
                                           files_path(""), programs.bin, i == 0 ? "one" : "two",
                                           i == 0 ? "one" : "two");
        programs_expect_success(run);
        programs_free(run);
    }
    expect_same_file("one.safetensors", "two.safetensors");
    train("", "layers", "-p 1 --max-steps 2 --init one.safetensors --dump-params begun");
    train("ringrun -n 2", "layers", "--max-steps 2 --init two.safetensors --dump-params staged");
    expect_same_file("begun.0", "staged.0");
}

static void masters_follow_to_other_stages(void **state)
{
    static const char other[] = "{train_batch_size: 64, optimizer: {type: \"AdamW\"}, bf16: "
                                "{enabled: true}, zero_optimization: {stage: 3}}";
    const char *first = CONFIG_WITH("bf16: {enabled: true}");
    files_write("config.json", first, strlen(first));
    train("ringrun -n 2", "layers", "--max-steps 7 --save s --dump-params before");
    files_write("config.json", other, strlen(other));
    train("ringrun -n 4", "layers",
          "--max-steps 7 --resume s "
          "--dump-params after");
    expect_same_file("before.0", "after.0");
}

/* The head of the order that all ranks have taken together does not depend on their number. */
static void other_ranks_and_stages_go_on_at_the_same_sample(void **state)
{
    static const char four[] =
        "{train_batch_size: 64, gradient_accumulation_steps: 2, optimizer: {type: \"SGD\"}, "
        "zero_optimization: {stage: 3}}";
    files_write("config.json", four, strlen(four));
    train("", "layers", "--max-steps 30 --metrics whole");
    train("ringrun -n 4", "layers", "--max-steps 9 --save s");
    programs_run *run = run_good("", "layers", "--max-steps 30 --metrics resumed --resume s");
    programs_expect_output(run, "NOTE --resume: ranks is 1, was 4");
    expect_near_losses("whole", "resumed", 10, 30);
    programs_free(run);
}

/* 63, 32, 21 and 16 updates an epoch of 1, 2, 3 and 4 ranks; update 70 is in its epoch's middle. */
#define RANKS_CONFIG(more) \
    "{train_micro_batch_size_per_gpu: 16, optimizer: {type: \"SGD\"}, scheduler: {type: " \
    "\"WarmupDecayLR\", params: {warmup_max_lr: 0.01, total_num_steps: \"auto\"}}, " \
    "steps_per_print: 1, csv_monitor: {enabled: true, output_path: \".\", job_name: \"csv\"}" more \
    "}"

/* @return updates that the metrics tell of. */
static long updates_of(const char *name)
{
    size_t bytes;
    long lines = 0;
    char *text = files_read(files_path(name), &bytes);
    assert_non_null(text);
    for (const char *at = text; (at = strstr(at, "{\"step\":")) != NULL; at++)
        lines++;
    free(text);
    return lines;
}

static void expect_in_file(const char *name, const char *text)
{
    size_t bytes;
    char *held = files_read(files_path(name), &bytes);
    assert_non_null(held);
    if (strstr(held, text) == NULL)
        fail_msg("no \"%s\" in %s:\n%s", text, name, held);
    free(held);
}

static void expect_without(const programs_run *run, const char *text)
{
    if (strstr(run->output, text) != NULL)
        fail_msg("\"%s\" in:\n%s", text, run->output);
}

/* A run of a number of ranks that is resumed by another: what is right for it. */
typedef struct other_ranks {
    int before, now;
    const char *length; /* the option */
    int epochs;
    long updates;     /* of the whole run */
    const char *last; /* update of its epoch, as --log-style torch has it */
    long samples;     /* of the whole run; another number of ranks repeats others */
    const char *more; /* options that go on */
} other_ranks;

static void go_on_with_other_ranks(const other_ranks *is)
{
    char launch[32], options[160], text[160];
    snprintf(launch, sizeof launch, "ringrun -n %d", is->before);
    train(launch, "layers", "--max-steps 70 --save s");
    snprintf(launch, sizeof launch, "ringrun -n %d", is->now);
    snprintf(options, sizeof options,
             "%s --save s --resume latest --metrics m --log-style torch --eval-every 0",
             is->length);
    programs_run *run = run_good(launch, "layers", options);
    snprintf(text, sizeof text, "total_num_steps: auto -> %ld\n", is->updates);
    programs_expect_output(run, text);
    snprintf(text, sizeof text, "total_num_steps is %ld, was 70\n", is->updates);
    programs_expect_output(run, text);
    snprintf(text, sizeof text, "Epoch [%d/%d], Step [%s], ", is->epochs, is->epochs, is->last);
    programs_expect_output(run, text);
    snprintf(text, sizeof text, "saved s/step-%08ld in ", is->updates);
    programs_expect_output(run, text);
    expect_without(run, "ended the run");
    programs_free(run);
    snprintf(text, sizeof text, "\"epochs\": %d, \"updates\": %ld,", is->epochs, is->updates);
    expect_in_file("m", text);
    snprintf(text, sizeof text, "\n%ld,", is->samples);
    expect_in_file("csv/Train_Samples_lr.csv", text);
    assert_int_equal(updates_of("m"), is->updates - 70);
    run = run_good(launch, "layers", options);
    snprintf(text, sizeof text,
             "the run is complete: update %ld, in epoch %d, was the last one; to continue, give %s",
             is->updates, is->epochs, is->more);
    assert_string_equal(run->last_line, text);
    expect_without(run, "samples/s");
    programs_free(run);
    assert_int_equal(updates_of("m"), is->updates - 70);
}

static void other_ranks_train_as_long_as_is_asked(void **state)
{
    static const char config[] = RANKS_CONFIG("");
    static const other_ranks rows[] = {
        {1, 2, "--max-steps 100", 3, 100, "2/32", 2064, "--max-steps above 100"},
        {2, 1, "--max-steps 100", 3, 100, "42/63", 2672, "--max-steps above 100"},
        {2, 3, "--max-steps 100", 4, 100, "13/21", 3630, "--max-steps above 100"},
        {4, 2, "--max-steps 100", 6, 100, "10/32", 5320, "--max-steps above 100"},
        {1, 2, "--epochs 4", 4, 162, "32/32", 4000, "--epochs above 4"},
        {2, 1, "--epochs 4", 4, 184, "63/63", 4000, "--epochs above 4"},
        {2, 3, "--epochs 4", 4, 108, "21/21", 4008, "--epochs above 4"},
        {4, 2, "--epochs 6 --max-steps 122", 6, 122, "32/32", 6000,
         "--epochs above 6 and --max-steps above 122"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        files_write("config.json", config, strlen(config));
        go_on_with_other_ranks(&rows[i]);
        files_tear_down(state);
        set_up(state);
    }
}

/* 992 samples are all that two ranks take, who leave short micro-batches out. */
static void an_epoch_with_nothing_left_is_over(void **state)
{
    static const char config[] = RANKS_CONFIG(""),
                      drops[] = RANKS_CONFIG(", dataloader_drop_last: true");
    files_write("config.json", config, strlen(config));
    train("", "layers", "--max-steps 62 --save s");
    files_write("config.json", drops, strlen(drops));
    programs_run *run = run_good("ringrun -n 2", "layers", "--max-steps 70 --resume s --metrics m");
    expect_without(run, "epoch 1: ");
    programs_expect_output(run, "epoch 2: ");
    programs_free(run);
    assert_int_equal(updates_of("m"), 8);
    train("", "layers", "--epochs 1 --resume s");
}

/* Shares that lie together begin elsewhere with other ranks: the epoch is taken again. */
static void shares_that_lie_together_take_their_epoch_again(void **state)
{
    static const char config[] = RANKS_CONFIG(", data_split: \"contiguous\"");
    files_write("config.json", config, strlen(config));
    train("ringrun -n 2", "layers", "--max-steps 20 --save s");
    programs_run *run = run_good("ringrun -n 2", "layers", "--max-steps 22 --resume s");
    expect_without(run, "samples twice");
    programs_free(run);
    run = run_good("", "layers", "--epochs 1 --resume s --metrics m");
    programs_expect_output(run, "NOTE --resume: epoch 1 uses 640 samples twice\n");
    programs_free(run);
    assert_int_equal(updates_of("m"), 63);
}

static void a_run_that_is_over_only_tells_its_accuracy(void **state)
{
    programs_run *first = run_good("", "layers",
                                   "--epochs 2 --save s --eval-every 2 --epoch-losses l");
    train("", "layers", "--epochs 2 --resume s --eval-every 0 --epoch-losses l --metrics m");
    programs_run *again = run_good("", "layers", "--resume s");
    assert_null(strstr(first->output, "epoch 1: test accuracy"));
    assert_string_equal(again->last_line, first->last_line);
    programs_expect_output(again,
                           "the run is complete: update 32, in epoch 2, was the last one; to "
                           "continue, give --epochs above 2\n");
    expect_without(again, "samples/s");
    assert_int_equal(updates_of("m"), 0);
    expect_in_file("m", "\"epochs\": 2, \"updates\": 32,");
    size_t bytes;
    char *losses = files_read(files_path("l"), &bytes);
    assert_null(strstr(losses, "\"outputs\": 0.0}"));
    free(losses);
    train("", "layers", "--epochs 2 --resume s --save other");
    assert_true(is_there("other/step-00000032/manifest.json"));
    programs_free(first);
    programs_free(again);
    first = run_good("", "layers", "--epochs 2 --eval-every 0");
    assert_null(strstr(first->output, "accuracy"));
    programs_free(first);
}

static void only_the_newest_checkpoints_are_kept(void **state)
{
    train("", "layers", "--max-steps 9 --save s --save-every 2 --keep 2");
    assert_false(is_there("s/step-00000006"));
    assert_true(is_there("s/step-00000008/manifest.json"));
    assert_true(is_there("s/step-00000009/manifest.json"));
    size_t bytes;
    char *latest = files_read(files_path("s/latest"), &bytes);
    assert_string_equal(latest, "step-00000009\n");
    free(latest);
}

/* ---- Signals ------------------------------------------------------------------------------- */

/* @return the step after @p text in the output. */
static long step_behind(const programs_run *run, const char *text)
{
    const char *at = strstr(run->output, text);
    if (at == NULL)
        fail_msg("no \"%s\" in:\n%s", text, run->output);
    return strtol(at + strlen(text), NULL, 10);
}

static void expect_nothing_lost(const programs_run *run)
{
    char options[160];
    const long step = step_behind(run, "stopped after update ");
    assert_int_equal(step_behind(run, "saved s/step-"), step);
    assert_int_equal(updates_of("metrics"), step);
    snprintf(options, sizeof options, "--max-steps %ld --resume s --dump-params resumed", step + 5);
    train("ringrun -n 2", "layers", options);
    snprintf(options, sizeof options, "--max-steps %ld --dump-params whole", step + 5);
    train("ringrun -n 2", "layers", options);
    expect_same_file("whole.0", "resumed.0");
}

#define ENDLESS "--epochs 100000 --eval-every 0 --save s --save-every 1000000 --metrics metrics"

/* Sends the signal to the shell's process, which will be another program's by then, @p ms after
 * the log tells @p text, or ends with it. */
#define SEND \
    "(until grep -q '%s' log || ! kill -0 $$; do sleep 0.01; done; sleep 0.%03u; kill -%s $$) " \
    "> /dev/null 2>&1 & "

/* Replaces a run's output by the log's contents. */
static programs_run *with_log(programs_run *run)
{
    size_t bytes;
    free(run->output);
    run->output = files_read(files_path("log"), &bytes);
    assert_non_null(run->output);
    run->last_line = run->output;
    return run;
}

static programs_run *interrupted(const char *signal_name, const char *text, unsigned ms,
                                 const char *launch, const char *model, const char *options)
{
    programs_run *run = programs_shell(
        "cd %s; PATH=%s:$PATH; : > log; " SEND "exec %s ringtrain --deepspeed_config config.json "
        "--data . --loss cross_entropy --model %s.json %s > log 2>&1",
        files_path(""), programs.bin, text, ms, signal_name, launch, model, options);
    return with_log(run);
}

#define STARTED "first update"

static void ctrl_c_loses_no_step(void **state)
{
    programs_run *run = interrupted("INT", STARTED, 50, "ringrun -n 2", "layers", ENDLESS);
    expect_status(run, 130);
    programs_expect_output(run, "SIGINT: stopped after update ");
    expect_nothing_lost(run);
    programs_free(run);
}

/* As a scheduler does that knows one process only. */
static void a_signal_to_one_rank_ends_all_at_the_same_update(void **state)
{
    static const char rank[] =
        "if [ $RING_RANK = 1 ]; then (until grep -q \"first update\" log; do sleep 0.01; done; "
        "kill -TERM $$) & fi; exec \"$@\"\n";
    files_write("rank.sh", rank, strlen(rank));
    files_write("log", "", 0);
    programs_run *run = with_log(shell("ringrun -n 2 sh rank.sh", "layers", ENDLESS " > log"));
    expect_status(run, 143);
    programs_expect_output(run, "SIGTERM: stopped after update ");
    programs_expect_output(run, "ended with exit code 143");
    expect_nothing_lost(run);
    programs_free(run);
}

static void without_a_folder_the_signal_ends_the_run_too(void **state)
{
    programs_run *run = interrupted("TERM", STARTED, 0, "", "layers",
                                    "--epochs 100000 --eval-every 0");
    expect_status(run, 143);
    programs_expect_output(run, "nothing is saved without --save DIR");
    programs_free(run);
}

static void a_second_signal_ends_at_once(void **state)
{
    const pid_t child = fork();
    if (child == 0) {
        const struct timespec later = {.tv_sec = 1, .tv_nsec = 100000000};
        stop_signals_watch();
        stop_signals_begin();
        kill(getpid(), SIGTERM);
        kill(getpid(), SIGTERM); /* the same one, by another way */
        while (stop_signals_asked() == 0.0)
            sched_yield();
        if (stop_signals_of(3 * stop_signals_asked()) != SIGTERM)
            _exit(1);
        nanosleep(&later, NULL);
        kill(getpid(), SIGINT);
        pause();
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGINT);
}

/* Two are read one after the other, which a terminal could do in no time. */
static void a_second_ctrl_c_at_a_terminal_ends_at_once(void **state)
{
    int terminal;
    const pid_t child = forkpty(&terminal, NULL, NULL, NULL);
    if (child == 0) {
        stop_signals_watch();
        stop_signals_begin();
        putchar('!');
        fflush(stdout);
        while (stop_signals_asked() == 0.0)
            sched_yield();
        putchar('?');
        fflush(stdout);
        pause();
    }
    int status = 0;
    for (char said = 0; said != '?';) {
        assert_int_equal(read(terminal, &said, 1), 1);
        if (said == '!')
            assert_int_equal(write(terminal, "\003", 1), 1);
    }
    assert_int_equal(write(terminal, "\003", 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGINT);
    close(terminal);
}

/* ---- Kills and full disks ------------------------------------------------------------------ */

/* All visible checkpoints are complete: none has to be skipped. */
static void expect_loadable(void)
{
    programs_run *run = programs_shell("cd %s && ls s && %s/ringtrain export s --out e 2>&1",
                                       files_path(""), programs.bin);
    if (strstr(run->output, "step-") != NULL)
        programs_expect_success(run);
    assert_null(strstr(run->output, "not used"));
    programs_free(run);
}

/* Checkpoints are written under such names. */
static bool has_half_a_checkpoint(void)
{
    programs_run *run = programs_shell("ls -A %s | grep '^[.]step'", files_path("s"));
    const bool has = run->status == 0;
    programs_free(run);
    return has;
}

/* @return of the newest checkpoint. */
static long newest_step(void)
{
    programs_run *run = programs_shell("ls %s | grep '^step-'", files_path("s"));
    const char *last = strrchr(run->output, '-');
    assert_non_null(last);
    const long step = strtol(last + 1, NULL, 10);
    programs_free(run);
    return step;
}

/* Kills a run that saves all the time, and starts it again where it was.
 * @return how many of the kills left a checkpoint that was not finished. */
static int kill_again_and_again(int kills)
{
    train_random random;
    random_seed(&random, (uint64_t)getpid());
    int halves = 0;
    for (int kill = 0; kill < kills; kill++) {
        programs_run *run = interrupted("KILL", "^saved", random_u32(&random) % 40, "ringrun -n 2",
                                        "wide",
                                        "--max-steps 100000 --eval-every 0 --save s --save-every 1 "
                                        "--keep 2 --resume latest");
        assert_null(strstr(run->output, "not used"));
        programs_free(run);
        halves += has_half_a_checkpoint();
        expect_loadable();
    }
    return halves;
}

/* @param usual  kills, if nobody wants others */
static void expect_whole_checkpoints(const char *config, int usual)
{
    const char *wanted = getenv("RING_TEST_KILLS");
    const int kills = wanted != NULL ? atoi(wanted) : usual;
    char options[160];
    files_write("config.json", config, strlen(config));
    const int halves = kill_again_and_again(kills);
    const long step = newest_step();
    assert_true(step >= kills);
    printf("%d kills up to update %ld, %d of them before a checkpoint was whole\n", kills, step,
           halves);
    assert_true(halves > 0 || kills < 50); /* few may all come between two checkpoints */
    snprintf(options, sizeof options,
             "--max-steps %ld --eval-every 0 --save s --save-every 100000 --resume latest "
             "--dump-params resumed",
             step + 20);
    programs_run *run = run_good("ringrun -n 2", "wide", options);
    assert_int_equal(step_behind(run, "resumed from s/step-"), step);
    programs_free(run);
    snprintf(options, sizeof options, "--max-steps %ld --eval-every 0 --dump-params whole",
             step + 20);
    train("ringrun -n 2", "wide", options);
    expect_same_file("whole.0", "resumed.0");
}

static void a_kill_while_saving_leaves_whole_checkpoints(void **state)
{
    expect_whole_checkpoints(STEADY_WITH(""), 5);
}

static void also_where_tensor_ranks_save(void **state)
{
    expect_whole_checkpoints(STEADY_WITH(", tensor_parallel: {autotp_size: 2}"), 2);
}

/* After the first checkpoint files may have 100 KiB, then the run gets SIGTERM. */
#define LIMIT \
    "trap '' XFSZ; ringtrain --deepspeed_config config.json --data . --model wide.json --epochs " \
    "100000 --eval-every 0 --save s --save-every 20 > log 2>&1 & pid=$!; " \
    "until [ -e s/latest ]; do sleep 0.02; done; prlimit --pid $pid --fsize=100000; " \
    "until grep -q 'training continues' log; do sleep 0.02; done; ls s; kill -TERM $pid; wait " \
    "$pid"

static void a_full_disk_is_told_and_the_old_checkpoint_stays(void **state)
{
    programs_run *run = programs_shell("cd %s && PATH=%s:$PATH && " LIMIT, files_path(""),
                                       programs.bin);
    size_t bytes;
    char *log = files_read(files_path("log"), &bytes);
    const char *told = strstr(log, "ringtrain: checkpoint not saved, training continues: s/.step");
    if (run->status != 1 || told == NULL || strstr(told, "safetensors: File too large") == NULL)
        fail_msg("exit status %d:\n%s", run->status, log);
    assert_non_null(strstr(run->output, "step-"));
    free(log);
    programs_free(run);
    expect_loadable();
    run = programs_shell("ls -a %s | grep '[.]step'", files_path("s"));
    assert_string_equal(run->output, ""); /* no half one takes the room */
    programs_free(run);
    run = run_good("", "wide", "--max-steps 1 --resume s");
    programs_expect_output(run, "resumed from s/step-");
    programs_free(run);
}

/* ---- Files of parameters ------------------------------------------------------------------- */

static programs_run *export_to(const char *options)
{
    programs_run *run = programs_shell("cd %s && %s/ringtrain export %s 2>&1", files_path(""),
                                       programs.bin, options);
    programs_expect_success(run);
    return run;
}

/* To nearest, ties to even. */
static uint16_t to_bf16(uint32_t bits)
{
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1)) >> 16);
}

static const char *data_of(const char *file)
{
    uint64_t length;
    memcpy(&length, file, sizeof length);
    return file + sizeof length + length;
}

/* A run at rate 0 leaves the parameters that it starts from. */
static void exported_parameters_start_other_runs(void **state)
{
    static const char still[] = "{train_batch_size: 64, optimizer: {type: \"SGD\", params: {lr: "
                                "0}}, zero_optimization: {stage: 3}}";
    train("ringrun -n 2", "layers", "--max-steps 5 --save s --dump-params dump");
    programs_free(export_to("s --out e.safetensors"));
    expect_same_file("e.safetensors", "dump.0");
    files_write("config.json", still, strlen(still));
    train("ringrun -n 2", "layers", "--max-steps 1 --init e.safetensors --dump-params still");
    expect_same_file("e.safetensors", "still.0");
    expect_failure("ringrun -n 2", "--max-steps 1 --resume s", 1,
                   "is of a run with another optimizer, which also has exp_avg");
    programs_run *run = shell("", "wide", "--max-steps 1 --init e.safetensors");
    programs_expect_output(run, "--init e.safetensors: 0.bias has another shape than the model's");
    programs_free(run);
}

static void exports_are_rounded_once(void **state)
{
    size_t bytes, half_bytes;
    train("", "layers", "--max-steps 5 --save s");
    programs_free(export_to("s/step-00000005 --out f"));
    programs_free(export_to("s --out b --dtype bf16"));
    char *full = files_read(files_path("f"), &bytes);
    char *half = files_read(files_path("b"), &half_bytes);
    const char *values = data_of(full), *rounded = data_of(half);
    const size_t count = (bytes - (size_t)(values - full)) / sizeof(float);
    assert_int_equal(count, 784 * 32 + 32 + 32 * 10 + 10);
    assert_int_equal((half_bytes - (size_t)(rounded - half)) / sizeof(uint16_t), count);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        uint16_t got;
        memcpy(&bits, values + i * sizeof bits, sizeof bits);
        memcpy(&got, rounded + i * sizeof got, sizeof got);
        assert_int_equal(got, to_bf16(bits));
    }
    free(full);
    free(half);
    /* And back, as far as 16 bits tell. */
    train("", "layers", "--max-steps 1 --init b");
}

/* ---- Refusals ------------------------------------------------------------------------------ */

static void what_would_lose_a_run_is_refused(void **state)
{
    programs_run *run = run_good("", "layers", "--max-steps 3 --save s --resume latest");
    programs_expect_output(run, "there is no checkpoint yet; training starts from the beginning");
    programs_free(run);
    expect_failure(
        "ringrun -n 2", "--max-steps 3 --save s", 1,
        "--save s: the folder already has a checkpoint of update 3; continue from it with "
        "--resume latest, or give another folder");
    expect_failure("", "--max-steps 3 --save /proc/s", 1, "ringtrain: /proc/s: ");
    expect_failure("ringrun -n 2", "--max-steps 3 --resume none", 1, "none: no such folder");
    expect_failure("", "--max-steps 3 --resume s/step-00000009", 1, "manifest.json: No such file");
    expect_failure("flock s", "--max-steps 3 --save s --resume latest", 1,
                   "another run is saving to this folder");
    expect_failure("", "--keep 3", 2, "--keep has no effect without --save DIR");
    expect_failure("", "--resume latest", 2, "--resume latest needs --save DIR");
    expect_failure("", "--resume s --init e", 2, "--init and --resume");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, files_tear_down)

/* A script's background processes ignore SIGINT, and so would their children. */
static void heed_signals(void)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_resumed_run_is_the_same_bit_for_bit),
        TEST(so_is_one_of_samples_as_they_are_stored),
        TEST(so_is_one_in_16_bits),
        TEST(so_is_one_of_two_stages),
        TEST(so_is_one_of_tensor_ranks),
        TEST(any_tensor_ranks_go_on_from_any_others),
        TEST(pipelines_and_single_ranks_exchange_checkpoints),
        TEST(masters_follow_to_other_stages),
        TEST(other_ranks_and_stages_go_on_at_the_same_sample),
        TEST(other_ranks_train_as_long_as_is_asked),
        TEST(an_epoch_with_nothing_left_is_over),
        TEST(shares_that_lie_together_take_their_epoch_again),
        TEST(a_run_that_is_over_only_tells_its_accuracy),
        TEST(only_the_newest_checkpoints_are_kept),
        TEST(ctrl_c_loses_no_step),
        TEST(a_signal_to_one_rank_ends_all_at_the_same_update),
        TEST(without_a_folder_the_signal_ends_the_run_too),
        TEST(a_second_signal_ends_at_once),
        TEST(a_second_ctrl_c_at_a_terminal_ends_at_once),
        TEST(a_kill_while_saving_leaves_whole_checkpoints),
        TEST(also_where_tensor_ranks_save),
        TEST(a_full_disk_is_told_and_the_old_checkpoint_stays),
        TEST(exported_parameters_start_other_runs),
        TEST(exports_are_rounded_once),
        TEST(what_would_lose_a_run_is_refused),
    };
    heed_signals();
    if (argc != 4)
        return 2;
    programs = (programs_paths){.bin = argv[1], .examples = argv[2], .shared = argv[3]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
