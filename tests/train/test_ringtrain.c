/* SPDX-License-Identifier: Apache-2.0
 * The program as its users start it: alone and under ringrun, on drawn data.
 * Arguments: folder of the programs, docs/examples/mnist, folder with seeds/. */
#include "check.h"
#include "files.h"
#include "programs.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SGD_64_REST "train_batch_size: 64, optimizer: {type: \"SGD\", params: {lr: 0.05}}}"
#define SGD_64 "{" SGD_64_REST

static int set_up(void **state)
{
    files_folder();
    files_dataset(1000, 300);
    return 0;
}

static void the_version_is_told(void **state)
{
    programs_run *run = programs_shell("%s/ringtrain --version", programs.bin);
    assert_int_equal(run->status, 0);
    assert_non_null(strstr(run->output, "ringtrain (libring) 0."));
    programs_free(run);
}

/* 1000 samples over 1, 2 and 4 ranks: every epoch ends in a short batch of 40. */
static void any_number_of_ranks_takes_the_same_steps(void **state)
{
    programs_run *alone = programs_train_config(0, SGD_64, "--epochs 7 --max-steps 100");
    programs_expect_success(alone);
    assert_int_equal(alone->steps, 100);
    assert_true(alone->loss[99] < alone->loss[0]);
    for (int ranks = 1; ranks <= 4; ranks *= 2) {
        programs_run *run = programs_train_config(ranks, SGD_64, "--epochs 7 --max-steps 100");
        programs_expect_success(run);
        assert_int_equal(run->steps, 100);
        for (size_t i = 0; i < run->steps; i++)
            assert_near(run->loss[i], alone->loss[i], 1e-6, 0);
        programs_expect_same_params(ranks);
        assert_near(programs_accuracy(run), programs_accuracy(alone), 0, 0.01);
        programs_free(run);
    }
    programs_free(alone);
}

static size_t count_of(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        count++;
    return count;
}

#define WARMUP \
    "{scheduler: {type: \"WarmupLR\", params: {warmup_max_lr: 0.05, warmup_type: \"linear\"}}, " \
    "steps_per_print: 20, fp16: {enabled: \"auto\", initial_scale_power: 24, hysteresis: " \
    "1}, " SGD_64_REST

/* The rate of an update that is skipped is that of the next one. */
static void a_skipped_update_does_not_move_the_schedule(void **state)
{
    programs_run *plain = programs_train_config(0, WARMUP, "--max-steps 20");
    programs_run *run = programs_train_config(2, WARMUP, "--max-steps 20 --fp16");
    programs_expect_success(plain);
    programs_expect_success(run);
    programs_expect_output(run, "fp16 storage, fp32 arithmetic: parameters fp16 with fp32 masters");
    programs_expect_output(run, "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: "
                                "16777216, reducing to 8388608\n"
                                "OVERFLOW in update 1: rank 0, tensor ");
    size_t skipped = 0;
    for (size_t i = 0; i < run->steps; i++) {
        char line[64];
        snprintf(line, sizeof line, "OVERFLOW in update %zu: ", i + 1);
        assert_near(run->lr[i], plain->lr[i - skipped], 0, 0);
        skipped += strstr(run->output, line) != NULL;
    }
    assert_in_range(skipped, 1, 19);
    assert_int_equal(count_of(run->output, "OVERFLOW in update"), skipped);
    char line[64];
    snprintf(line, sizeof line, "step=20, skipped=%zu, lr=[", skipped);
    programs_expect_output(run, line);
    programs_expect_output(plain, "step=20, skipped=0, lr=[");
    programs_expect_same_params(2);
    programs_free(plain);
    programs_free(run);
}

/* Convolutions, dropout and a residual connection: a sample's elements are dropped alike wherever
 * it lies. */
static void networks_of_layers_take_the_same_steps_on_any_ranks(void **state)
{
    static const char layers[] =
        "{name: \"mine\", input: [1, 28, 28], layers: [{type: \"avg_pool2d\", kernel: 2}, {type: "
        "\"conv2d\", channels: 4, kernel: 3, padding: 1, name: \"a\"}, {type: \"tanh\"}, {type: "
        "\"conv2d\", channels: 4, kernel: 3, padding: 1}, {type: \"add\", input: [\"3\", \"a\"]}, "
        "{type: \"flatten\"}, {type: \"dropout\"}, {type: \"linear\", features: 10}]}";
    files_write("layers.json", layers, strlen(layers));
    char options[2][600] = {"--model lenet5 --max-steps 20"};
    snprintf(options[1], sizeof options[1], "--model %s --max-steps 20", files_path("layers.json"));
    for (int model = 0; model < 2; model++) {
        programs_run *alone = programs_train_config(0, SGD_64, options[model]);
        programs_run *two = programs_train_config(2, SGD_64, options[model]);
        programs_expect_success(alone);
        programs_expect_success(two);
        assert_int_equal(two->steps, 20);
        programs_expect_output(two, model == 0 ? "training lenet5 (61706 parameters, loss mse)"
                                               : "training mine (8038 parameters, loss mse)");
        assert_true(two->loss[19] < two->loss[0]);
        for (size_t i = 0; i < 20; i++)
            assert_near(two->loss[i], alone->loss[i], 1e-6, 0);
        programs_expect_same_params(2);
        programs_free(alone);
        programs_free(two);
    }
}

/* Two ranks add two numbers: in any order the same. */
static void all_stages_of_zero_take_the_same_steps(void **state)
{
    double losses[4][20];
    for (int stage = 0; stage <= 3; stage++) {
        char config[300], line[80];
        snprintf(config, sizeof config,
                 "{train_batch_size: 64, zero_optimization: {stage: %d}, optimizer: {type: "
                 "\"AdamW\"}}",
                 stage);
        programs_run *run = programs_train_config(2, config, "--max-steps 20 --model lenet5");
        programs_expect_success(run);
        programs_expect_same_params(2);
        memcpy(losses[stage], run->loss, sizeof losses[stage]);
        assert_memory_equal(losses[stage], losses[0], sizeof losses[0]);
        snprintf(line, sizeof line, "ZeRO stage %d: each rank holds ", stage);
        assert_int_equal(strstr(run->output, line) != NULL, stage > 0);
        programs_free(run);
    }
    programs_run *run = programs_train_config(
        0, "{train_batch_size: 64, zero_optimization: {stage: 3}, optimizer: {type: \"SGD\"}}",
        "--max-steps 2");
    programs_expect_success(run);
    programs_expect_output(run, "ZeRO has no effect with one rank\n");
    programs_free(run);
}

/* @return the sum of the numbers in "| name: 1.2" of @p line, up to "| reduction hidden". */
static double sum_of_shares(const char *line)
{
    double sum = 0.0, share;
    int used;
    char name[32];
    while (sscanf(line, " | %31[a-z]: %lf%n", name, &share, &used) == 2) {
        sum += share;
        line += used;
    }
    return sum;
}

static double number_behind(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    assert_non_null(at);
    return strtod(at + strlen(name), NULL);
}

static void expect_shares_of_a_hundred(const programs_run *run, int lines)
{
    const char *at = run->output;
    for (; (at = strstr(at, "time (%)")) != NULL; lines--) {
        at += strlen("time (%)");
        assert_near(sum_of_shares(at), 100.0, 1e-9, 0);
        assert_true(number_behind(at, "forward: ") > 0.0);
        assert_true(number_behind(at, "wait: ") >= 0.0); /* 0 where this rank came last */
        assert_in_range((int)number_behind(at, "reduction hidden: "), 0, 100);
    }
    assert_int_equal(lines, 0);
}

static void expect_traced_rank(const cJSON *events, int rank)
{
    const cJSON *event;
    int forward = 0, begun = 0, ended = 0;
    double latest = 0.0;
    cJSON_ArrayForEach(event, events)
    {
        if (cJSON_GetObjectItem(event, "pid")->valueint != rank)
            continue;
        const char phase = *cJSON_GetObjectItem(event, "ph")->valuestring;
        const char *name = cJSON_GetObjectItem(event, "name")->valuestring;
        begun += phase == 'b';
        ended += phase == 'e';
        if (phase != 'X')
            continue;
        forward += strcmp(name, "forward bucket 0") == 0;
        const double start = cJSON_GetObjectItem(event, "ts")->valuedouble;
        assert_true(start >= latest - 0.01); /* one thing after the other */
        latest = start + cJSON_GetObjectItem(event, "dur")->valuedouble;
    }
    assert_int_equal(forward, 20);
    assert_int_equal(begun, ended);
    assert_int_equal(begun, 20 * 7); /* the loss, three reductions, three gathers */
}

static const char *id_of(const cJSON *event)
{
    return cJSON_GetObjectItem(event, "id")->valuestring;
}

/* A wire call has a name of its own on each rank, "rank.update.number", and ends on none before all
 * have begun it: their clock is one. */
static void expect_wire(const cJSON *events)
{
    const cJSON *event, *other;
    cJSON_ArrayForEach(event, events)
    {
        int found = 0, ended = 0;
        if (*cJSON_GetObjectItem(event, "ph")->valuestring != 'b')
            continue;
        const double begin = cJSON_GetObjectItem(event, "ts")->valuedouble;
        cJSON_ArrayForEach(other, events)
        {
            const char phase = *cJSON_GetObjectItem(other, "ph")->valuestring;
            found += phase == 'b' && strcmp(id_of(other), id_of(event)) == 0;
            if (phase != 'e' || strcmp(strchr(id_of(other), '.'), strchr(id_of(event), '.')) != 0)
                continue;
            ended++;
            assert_true(cJSON_GetObjectItem(other, "ts")->valuedouble >= begin);
        }
        assert_int_equal(found, 1);
        assert_int_equal(ended, 2);
    }
}

static void expect_trace(const char *path)
{
    size_t bytes;
    char *text = files_read(path, &bytes);
    assert_non_null(text);
    cJSON *trace = cJSON_ParseWithLength(text, bytes);
    const cJSON *events = cJSON_GetObjectItem(trace, "traceEvents");
    expect_traced_rank(events, 0);
    expect_traced_rank(events, 1);
    expect_wire(events);
    cJSON_Delete(trace);
    free(text);
}

static void reports_tell_of_time_memory_and_partition(void **state)
{
    char options[300];
    snprintf(options, sizeof options, "--max-steps 24 --epochs 2 --monitor-every 8 --trace %s",
             files_path("trace"));
    programs_run *run = programs_train_config(
        2,
        "{train_batch_size: 64, optimizer: {type: \"Adam\"}, steps_per_print: "
        "12, wall_clock_breakdown: true, memory_breakdown: true, dump_state: "
        "true, zero_optimization: {stage: 2}}",
        options);
    programs_expect_success(run);
    expect_shares_of_a_hundred(run, 2);
    expect_trace(files_path("trace"));
    programs_expect_output(run,
                           "\nbucket 0: nodes 0 to 1, 200704 elements and 0 of padding; rank r has "
                           "100352 from r * 100352 on\n");
    programs_expect_output(run, "\nranks: 2 on 1 host, started by ringrun, transport shm\n");
    programs_expect_output(run, "\ngroups of gradients: 0 1\n");
    char host[64] = "", line[200];
    gethostname(host, sizeof host - 1);
    snprintf(line, sizeof line, "\npath of gradients: rank 0 on %s, rank 1 on %s, then rank 0\n",
             host, host);
    programs_expect_output(run, line);
    /* 218058 parameters; 2 ranks own half of the gradients and of Adam's two moments */
    programs_expect_output(run, "\nmemory of rank 1 in bytes: parameters 872232, gradients 436116, "
                                "optimizer's states 872232, live buckets 1607680, activations ");
    programs_expect_output(run, "\nmemory of rank 1: ");
    programs_expect_output(run, "\nupdate 16 | rank 0: ");
    programs_free(run);
}

/* @return the lines from @p at up to and with the one that begins with @p last; 0: there is none.
 */
static int lines_up_to(const char *at, const char *last)
{
    int lines = 0;
    for (; at != NULL && *at != '\0'; at = strchr(at, '\n'), at += at != NULL) {
        lines++;
        if (strncmp(at, last, strlen(last)) == 0)
            return lines;
    }
    return 0;
}

/* Updates of an epoch that many lines do not divide, and those that make more lines the shorter
 * the interval. */
static void an_epoch_has_ten_lines_at_most(void **state)
{
    static const int updates[] = {4, 1, 5, 7, 9, 13, 19, 100};
    for (size_t u = 0; u < COUNT_OF(updates); u++) {
        char config[200];
        snprintf(config, sizeof config,
                 "{train_batch_size: %d, optimizer: {type: \"SGD\", params: {lr: 0.01}}}",
                 (1000 + updates[u] - 1) / updates[u]);
        programs_run *run = programs_train_config(0, config, "--epochs 2");
        programs_expect_success(run);
        assert_int_equal(run->steps, 2 * updates[u]);
        const char *first = strstr(run->output, "first update done ");
        const char *second = strstr(run->output, "\nepoch 1: ");
        assert_non_null(first);
        assert_non_null(second);
        const int lines[] = {lines_up_to(first, "epoch 1: "),
                             lines_up_to(strchr(second + 1, '\n') + 1, "epoch 2: ")};
        if (lines[0] < 1 || lines[0] > 10 || lines[1] < 1 || lines[1] > 10)
            fail_msg("%d updates an epoch: %d lines and %d", updates[u], lines[0], lines[1]);
        assert_null(strstr(run->output, "SamplesPerSec"));
        assert_int_equal(count_of(run->output, "samples/sec: "), count_of(run->output, "step="));
        programs_free(run);
    }
}

/* As the seeds have it: so often, whatever the length of an epoch. */
static void the_configuration_says_how_often_lines_come(void **state)
{
    programs_run *run = programs_train_config(
        0, "{train_batch_size: 50, steps_per_print: 1, optimizer: {type: \"SGD\"}}", "");
    programs_expect_success(run);
    assert_int_equal(run->steps, 20);
    assert_int_equal(count_of(run->output, "[Rank 0] step="), 20);
    assert_int_equal(count_of(run->output, "\nsteps: "), 20);
    programs_free(run);
}

static void more_ranks_than_cores_are_told(void **state)
{
    const int ranks = (int)sysconf(_SC_NPROCESSORS_ONLN) + 1;
    char line[80];
    if (ranks > 9)
        return; /* the data are for fewer ranks */
    programs_run *run = programs_train_config(
        ranks, "{train_micro_batch_size_per_gpu: 10, optimizer: {type: \"SGD\"}}", "--max-steps 1");
    programs_expect_success(run);
    snprintf(line, sizeof line, "\nNOTE %d ranks share the %d core", ranks, ranks - 1);
    programs_expect_output(run, line);
    programs_free(run);
}

static void more_readers_than_cores_are_told(void **state)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    char options[80], line[120];
    for (long readers = cores - 1; readers <= cores; readers++) {
        snprintf(options, sizeof options, "--max-steps 1 --eval-every 0 --workers %ld", readers);
        snprintf(line, sizeof line, "\nNOTE 1 rank with %ld reader%s each share the %ld core",
                 readers, readers == 1 ? "" : "s", cores);
        programs_run *run = programs_train_config(1, SGD_64, options);
        programs_expect_success(run);
        if (readers == cores)
            programs_expect_output(run, line);
        else
            assert_null(strstr(run->output, "a lower number of --workers"));
        programs_free(run);
    }
}

static void metrics_that_are_there_stop_the_run(void **state)
{
    files_write("kept", "old\n", 4);
    char options[200];
    snprintf(options, sizeof options, "--metrics %s", files_path("kept"));
    programs_run *run = programs_train_config(2, SGD_64, options);
    assert_int_equal(run->status, 1);
    programs_expect_output(run, "/kept already exists; give another name, remove it, or add "
                                "--append-metrics");
    assert_null(strstr(run->output, "test accuracy"));
    programs_free(run);
}

static void ranks_that_do_not_divide_the_data_repeat_a_few_samples(void **state)
{
    programs_run *run =
        programs_train_config(3,
                              "{train_micro_batch_size_per_gpu: 10, gradient_accumulation_steps: "
                              "3, optimizer: {type: \"AdamW\"}}",
                              "--loss cross_entropy");
    programs_expect_success(run);
    programs_expect_output(run, "1000 samples for 3 ranks: 2 samples repeated in each epoch\n");
    assert_int_equal(run->steps, 12); /* 334 samples a rank in updates of 30 */
    programs_expect_same_params(3);
    programs_free(run);
}

/* DistributedSampler(drop_last = True): 333 samples a rank are 3 updates of 111, where the 334 of
 * ranks that repeat some are 4. */
static void ranks_that_do_not_divide_the_data_may_leave_samples_out(void **state)
{
    static const char *const drops[] = {"false", "true"},
                             *const lines[] = {
                                 "1000 samples for 3 ranks: 2 samples repeated in each epoch\n",
                                 "1000 samples for 3 ranks: 1 sample left out in each epoch\n"};
    for (size_t i = 0; i < COUNT_OF(drops); i++) {
        char config[200];
        snprintf(config, sizeof config,
                 "{train_micro_batch_size_per_gpu: 111, sampler_drop_last: %s, optimizer: {type: "
                 "\"AdamW\"}}",
                 drops[i]);
        programs_run *run = programs_train_config(3, config, "");
        programs_expect_success(run);
        programs_expect_output(run, lines[i]);
        assert_int_equal(run->steps, i == 0 ? 4 : 3);
        programs_free(run);
    }
}

static void too_few_samples_are_refused(void **state)
{
    static const struct {
        size_t samples;
        const char *keys, *error;
    } cases[] = {
        {5, "train_micro_batch_size_per_gpu: 2",
         "the training set has 5 samples, and an update takes 6; give more data or a "
         "train_batch_size of at most 5"},
        {1, "train_batch_size: 30",
         "the training set has 1 sample, and an update takes 30; give more data or a "
         "train_batch_size of at most 1"},
        {6,
         "train_micro_batch_size_per_gpu: 2, data_partition: [1, 1, 1], dataloader_drop_last: "
         "true",
         "an epoch of 6 samples on 3 ranks"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char config[256];
        snprintf(config, sizeof config, "{%s, optimizer: {type: \"SGD\"}}", cases[i].keys);
        files_dataset(cases[i].samples, 2);
        programs_run *run = programs_train_config(3, config, "");
        assert_int_equal(run->status, 1);
        programs_expect_output(run, cases[i].error);
        programs_free(run);
    }
}

static void a_network_learns_and_says_its_accuracy_last(void **state)
{
    programs_run *run = programs_train_config(2,
                                              "{train_batch_size: 50, optimizer: {type: \"Adam\"}}",
                                              "--loss cross_entropy --epochs 4 --seed 3");
    programs_expect_success(run);
    assert_true(programs_accuracy(run) > 0.9);
    programs_expect_output(run, "epoch 4: test accuracy ");
    programs_expect_output(run, "gradient_clipping ......................... 1.0 (default)\n");
    programs_expect_output(run, "[Rank 0] step=80, skipped=0, lr=[0.001], mom=[[0.9, 0.999]]\n");
    programs_free(run);
}

/* The lines show the values of the next update, as in DeepSpeed: the momentum falls to 0.8 while
 * the rate rises, and the first update has the lower values of both. */
static void lines_show_the_momentum_in_force(void **state)
{
    programs_run *run = programs_train_config(
        1,
        "{train_batch_size: 50, optimizer: {type: \"Adam\"}, steps_per_print: 1, scheduler: "
        "{type: \"OneCycle\", params: {cycle_min_lr: 0.001, cycle_max_lr: 0.003, "
        "cycle_first_step_size: 2}}}",
        "--max-steps 3 --eval-every 0");
    programs_expect_success(run);
    static const char *const shown[] = {" step=1, skipped=0, lr=[0.002], mom=[[0.8500000000",
                                        " step=2, skipped=0, lr=[0.003], mom=[[0.8, 0.99]]\n",
                                        " step=3, skipped=0, lr=[0.002], mom=[[0.8500000000"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        programs_expect_output(run, shown[i]);
    programs_free(run);
}

/* Two updates: the second one's loss tells whether the biases moved in the first. */
static double second_loss(const char *group, const char *shown)
{
    char config[256];
    snprintf(config, sizeof config,
             "{train_batch_size: 50, steps_per_print: 2, optimizer: {type: \"SGD\", param_groups: "
             "\"no_decay\", %s params: {lr: 0.5}}}",
             group);
    programs_run *run = programs_train_config(1, config, "--max-steps 2 --eval-every 0");
    programs_expect_success(run);
    programs_expect_output(run, shown);
    const double loss = run->loss[1];
    programs_free(run);
    return loss;
}

static void a_group_may_have_a_rate_of_its_own(void **state)
{
    const double same = second_loss("", ", lr=[0.5, 0.5], mom=[0, 0]\n");
    assert_true(same != second_loss("no_decay_lr: 0,", ", lr=[0.5, 0.0], mom=[0, 0]\n"));
    assert_true(same == second_loss("no_decay_lr: 0.5,", ", lr=[0.5, 0.5], mom=[0, 0]\n"));
}

static void max_steps_goes_on_over_epochs(void **state)
{
    programs_run *run = programs_train_config(2, SGD_64, "--max-steps 20"); /* an epoch has 16 */
    programs_expect_success(run);
    assert_int_equal(run->steps, 20);
    programs_expect_output(run, "epoch 2: test accuracy ");
    programs_free(run);
    run = programs_train_config(2, SGD_64, "--max-steps 20 --epochs 1");
    programs_expect_success(run);
    assert_int_equal(run->steps, 16);
    programs_expect_output(run,
                           "--epochs 1 ended the run after 16 updates, before --max-steps 20\n");
    programs_free(run);
}

/* The program's account of rank 0's memory. */
static double counted_bytes(const programs_run *run, const char *of)
{
    const char *at = strstr(run->output, "memory of rank 0 in bytes: ");
    assert_non_null(at);
    at = strstr(at, of);
    assert_non_null(at);
    return strtod(at + strlen(of), NULL);
}

/* Each rank has 400 samples, and its micro-batches could have 500. */
static void a_large_micro_batch_takes_no_more_memory_than_its_samples(void **state)
{
    programs_run *run = programs_train_config(
        2,
        "{train_micro_batch_size_per_gpu: 500, data_partition: [400, 400], steps_per_print: 1, "
        "optimizer: {type: \"SGD\"}}",
        "");
    programs_expect_success(run);
    assert_near(counted_bytes(run, ", batch "), 400 * (784 * sizeof(float) + sizeof(uint32_t)), 0,
                0);
    assert_true(counted_bytes(run, ", activations ") < 1.2e6);
    programs_free(run);
}

static void deepspeeds_options_are_accepted(void **state)
{
    files_write("config.json", SGD_64, strlen(SGD_64));
    static const char *const forms[] = {"--deepspeed --deepspeed_config %s --local_rank=0",
                                        "--local_rank 0 --deepspeed=%s", "--deepspeed %s"};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        char options[600];
        /* the forms differ in nothing but where the file's name stands */
        const char *at = strstr(forms[i], "%s");
        snprintf(options, sizeof options, "%.*s%s%s", (int)(at - forms[i]), forms[i],
                 files_path("config.json"), at + 2);
        programs_run *run = programs_train(0, "--data %s --max-steps 1 %s", files_path(""),
                                           options);
        programs_expect_success(run);
        programs_expect_output(run, "NOTE --deepspeed has no effect");
        programs_free(run);
    }
}

static void compat_0_13_starts_at_the_optimizers_rate(void **state)
{
    static const char config[] =
        "{train_batch_size: 1000, optimizer: {type: \"SGD\", params: {lr: 0}}, scheduler: {type: "
        "\"WarmupLR\", params: {warmup_min_lr: 0.5, warmup_max_lr: 0.5}}}";
    programs_run *now = programs_train_config(0, config, "--max-steps 2 --epochs 2");
    programs_run *then = programs_train_config(0, config,
                                               "--max-steps 2 --epochs 2 --compat ds-0.13");
    programs_expect_success(now);
    programs_expect_success(then);
    assert_near(now->lr[0], 0.5, 0, 0);
    assert_near(then->lr[0], 0.0, 0, 0);
    assert_near(then->lr[1], 0.5, 0, 0);
    programs_expect_output(then, "gradient_clipping ......................... 0.0\n");
    programs_expect_output(then, "steps_per_print ........................... 10\n");
    programs_free(now);
    programs_free(then);
}

/* The rate is 0: losses differ only where the samples of a batch do. */
static void compat_0_13_has_one_order_for_all_epochs(void **state)
{
    static const char config[] =
        "{train_batch_size: 100, optimizer: {type: \"SGD\", params: {lr: 0}}}";
    programs_run *now = programs_train_config(0, config, "--epochs 2");
    programs_run *then = programs_train_config(0, config, "--epochs 2 --compat ds-0.13");
    programs_expect_success(now);
    programs_expect_success(then);
    assert_int_equal(then->steps, 20);
    for (size_t i = 0; i < 10; i++) {
        assert_true(then->loss[10 + i] == then->loss[i]);
        assert_true(now->loss[10 + i] != now->loss[i]);
        assert_true(then->loss[i] == now->loss[i]);
    }
    programs_free(now);
    programs_free(then);
}

/* One line, from rank 0, though all ranks stop. */
static void expect_failure_told_once(const programs_run *run, const char *error)
{
    assert_int_equal(run->status, 1);
    programs_expect_output(run, error);
    const char *first = strstr(run->output, "ringtrain: ");
    assert_non_null(first);
    if (strstr(first + 1, "ringtrain: ") != NULL)
        fail_msg("told more than once:\n%s", run->output);
}

/* Runs ringtrain on two ranks, the second one with a configuration and options of its own. */
static programs_run *train_unlike(const char *config, const char *options)
{
    char script[2048];
    snprintf(script, sizeof script,
             "[ $RANK = 1 ] && set -- %s\n"
             "exec %s/ringtrain --deepspeed_config %s.$RANK --data %s --max-steps 2 \"$@\"\n",
             options, programs.bin, files_path("config"), files_path(""));
    files_write("config.0", SGD_64, strlen(SGD_64));
    files_write("config.1", config, strlen(config));
    files_write("rank.sh", script, strlen(script));
    return programs_shell("%s/ringrun -n 2 sh %s 2>&1", programs.bin, files_path("rank.sh"));
}

static void ranks_must_have_the_same_settings(void **state)
{
    static const struct {
        const char *config, *options, *error;
    } cases[] = {
        {"{train_batch_size: 64, optimizer: {type: \"SGD\", params: {lr: 0.5}}}", "",
         "optimizer.params.lr is 0.5, but 0.05 on rank 0"},
        {"{train_batch_size: 64, optimizer: {type: \"Adam\", params: {lr: 0.05}}}", "",
         "optimizer.type is Adam, but SGD on rank 0"},
        {"{train_batch_size: 32, optimizer: {type: \"SGD\", params: {lr: 0.05}}}", "",
         "train_batch_size is 32, but 64 on rank 0"},
        {"{gradient_clipping: 0.5, " SGD_64_REST, "",
         "gradient_clipping is 0.5, but 1.0 on rank 0"},
        {"{scheduler: {type: \"WarmupLR\"}, " SGD_64_REST, "",
         "scheduler.type is WarmupLR, but none on rank 0"},
        {SGD_64, "--seed 7", "--seed is 7, but 0 on rank 0"},
        {SGD_64, "--model lenet5", "--model is lenet5 (12 layers, hash "},
        {SGD_64, "--loss cross_entropy", "--loss is cross_entropy, but mse on rank 0"},
        {SGD_64, "--compat ds-0.13", "--compat is ds-0.13, but none on rank 0"},
        {SGD_64, "--epochs 2", "--epochs is 2, but 1 on rank 0"},
        {SGD_64, "--max-steps 9", "--max-steps is 9, but 2 on rank 0"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        programs_run *run = train_unlike(cases[i].config, cases[i].options);
        expect_failure_told_once(run, cases[i].error);
        programs_expect_output(run, "ringtrain: rank 1: ");
        programs_expect_output(run, " on rank 0; give every rank the same file, options and data");
        programs_free(run);
    }
    programs_run *run = train_unlike(SGD_64, "--unknown-keys warn");
    programs_expect_success(run);
    programs_free(run);
}

/* One pixel is another. */
static void ranks_must_have_the_same_data(void **state)
{
    programs_free(programs_shell(
        "cd %s && mkdir other && cp *ubyte* other && cd other && gunzip train-images* && printf "
        "'\\377' | dd of=train-images-idx3-ubyte bs=1 seek=7000 conv=notrunc 2>&1",
        files_path("")));
    char options[500];
    snprintf(options, sizeof options, "--data %s", files_path("other"));
    programs_run *run = train_unlike(SGD_64, options);
    programs_free(programs_shell("rm -r %s", files_path("other")));
    expect_failure_told_once(run, "ringtrain: rank 1: training data is 1000 samples (hash ");
    programs_free(run);
}

/* Each error is one line, on standard error, with exit status 1 and nothing trained. */
static void errors_of_setting_up_are_told_once(void **state)
{
    static const char layers[] =
        "{name: \"wide\", input: [784], layers: [{type: \"linear\", features: 11}]}";
    char wide[500];
    files_write("wide.json", layers, strlen(layers));
    snprintf(wide, sizeof wide, "--model %s", files_path("wide.json"));
    const struct {
        const char *config, *options, *error;
    } cases[] = {
        {"{train_batch_size: 64}", "", "config.json: no optimizer; add "},
        {"{train_batch_sise: 64}", "",
         "config.json:1:2: unknown key \"train_batch_sise\"; did you mean \"train_batch_size\"?"},
        {"{train_batch_size: 144, train_micro_batch_size_per_gpu: 24, gradient_accumulation_steps: "
         "6, optimizer: {type: \"SGD\"}}",
         "",
         "Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * "
         "gradient_acc_step * world_size 144 != 24 * 6 * 2\none of these changes makes them fit: "
         "gradient_accumulation_steps 3, or train_batch_size 288, or 1 rank\nthe number of ranks "
         "is 2, from ringrun"},
        {SGD_64, "--model /nowhere/m.json", "/nowhere/m.json: No such file or directory"},
        {SGD_64, wide,
         "the model wide outputs [11] for a sample, but there are 10 classes: its last layer must "
         "be linear with 10 features"},
        {SGD_64, "--model alexnet",
         ": images for training and testing have 784 and 784 numbers, but the model alexnet takes "
         "3072: [3, 32, 32]"},
        {SGD_64, "--data /nowhere", "/nowhere: no such folder"},
        {SGD_64, "--save /nowhere/s", "/nowhere/s: its parent folder does not exist"},
        {SGD_64, "--save /dev/null", "/dev/null: not a folder"},
        {SGD_64, "--resume /dev/null", "/dev/null: not a folder"},
        {SGD_64, "--resume /nowhere", "/nowhere: no such folder"},
        {SGD_64, "--metrics /nowhere/m", "--metrics /nowhere/m: No such file or directory"},
        {SGD_64, "--dump-params /nowhere/p",
         "--dump-params /nowhere/p.0: No such file or directory"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        programs_run *run = programs_train_config(2, cases[i].config, cases[i].options);
        expect_failure_told_once(run, cases[i].error);
        assert_int_equal(run->steps, 0);
        programs_free(run);
    }
}

static void wrong_options_are_refused(void **state)
{
    static const struct {
        const char *options, *error;
    } cases[] = {
        {"--data x --deepspeed_config c --metrics m --monitor-every 0",
         "--monitor-every 0: expected a whole number from 1 to 2147483647"},
        {"--log-style seed",
         "--log-style seed: expected short or deepspeed or neox or brief or torch"},
        {"--data x", "no configuration: give --deepspeed_config FILE"},
        {"--deepspeed_config x", "no data: give --data DIR or set RING_DATA"},
        {"--model lenet", "--model lenet: expected mlp, lenet5, alexnet, gpt or a FILE.json; see "
                          "ringtrain --help"},
        {"--loss hinge", "--loss hinge: expected mse or cross_entropy"},
        {"--epochs 0", "--epochs 0: expected a whole number from 1 to 1000000"},
        {"--max-steps 1x", "--max-steps 1x: expected a whole number from 1 to 2147483647"},
        {"--seed -1", "--seed -1: expected a whole number from 0 to 4294967295"},
        {"--compat ds-0.12", "--compat ds-0.12: expected ds-0.13"},
        {"--unknown-keys skip", "--unknown-keys skip: expected error or warn"},
        {"--local_rank abc", "--local_rank abc: expected a whole number from 0 to 2147483647"},
        {"--local_rank=abc", "--local_rank=abc: expected a whole number from 0 to 2147483647"},
        {"config.json", "unexpected argument \"config.json\"; ringtrain takes only options"},
        {"--no-such-option", "unknown option '--no-such-option'"},
    };
    unsetenv("RING_DATA");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        programs_run *run = programs_train(0, "%s", cases[i].options);
        assert_int_equal(run->status, 2);
        programs_expect_output(run, cases[i].error);
        programs_free(run);
    }
}

static void wrong_options_are_told_once(void **state)
{
    programs_run *alone = programs_shell("%s/ringtrain --deepspeed_config c --data d "
                                         "--append-metrics 2>&1",
                                         programs.bin);
    assert_int_equal(alone->status, 2);
    programs_expect_output(alone, "--append-metrics needs a file; give --metrics FILE");
    programs_free(alone);
    static const char *const wrong[] = {"--no-such-option", "--model lenet", "--epochs 1"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        programs_run *run = programs_train(2, "%s", wrong[i]);
        const char *first = strstr(run->output, "ringtrain: ");
        assert_non_null(first);
        assert_null(strstr(first + 1, "ringtrain: "));
        assert_int_not_equal(run->status, 0);
        programs_free(run);
    }
}

static void a_diverging_run_stops_all_ranks_with_one_text(void **state)
{
    programs_run *run =
        programs_train_config(2,
                              "{train_batch_size: 64, gradient_clipping: 0, optimizer: {type: "
                              "\"SGD\", params: {lr: 1e30}}}",
                              "");
    expect_failure_told_once(run, "ringtrain: the loss is ");
    programs_expect_output(run, "in update 2; lower the learning rate or set gradient_clipping");
    programs_free(run);
}

static void the_last_updates_parameters_must_be_finite(void **state)
{
    programs_run *run =
        programs_train_config(2,
                              "{train_batch_size: 64, gradient_clipping: 0, optimizer: {type: "
                              "\"SGD\", params: {lr: 1e300}}}",
                              "--max-steps 1");
    expect_failure_told_once(run, "ringtrain: parameter 0.weight is not finite after update 1; "
                                  "lower the learning rate or set gradient_clipping");
    assert_null(strstr(run->output, "test accuracy"));
    programs_free(run);
}

/* The run itself was good: what it found is not lost with the file. */
static void metrics_that_cannot_be_written_fail_after_the_accuracy(void **state)
{
    programs_run *run = programs_train_config(2, SGD_64, "--metrics /dev/full");
    expect_failure_told_once(run, "--metrics /dev/full: No space left on device");
    programs_expect_output(run, "\ntest accuracy 0.");
    size_t bytes;
    char *params = files_read(files_path("params.0"), &bytes);
    assert_non_null(params);
    free(params);
    programs_free(run);
}

static void standard_output_that_cannot_be_written_is_a_failure(void **state)
{
    files_write("config.json", SGD_64, strlen(SGD_64));
    char training[1024];
    snprintf(training, sizeof training, "ringtrain --deepspeed_config %s --data %s",
             files_path("config.json"), files_path(""));
    const char *const commands[] = {training, "ringtrain --help", "ringtrain --config-keys"};
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        programs_run *run = programs_shell("%s/%s 2>&1 > /dev/full", programs.bin, commands[i]);
        expect_failure_told_once(
            run, "ringtrain: standard output: not all of it could be written; is the disk full?");
        programs_free(run);
    }
}

/* The document shows the configuration between ```json and ```. */
static void the_shipped_configuration_is_the_documents_byte_for_byte(void **state)
{
    char path[4096];
    size_t bytes;
    char *document = programs_document("000");
    char *start = strstr(document, "```json\n");
    assert_non_null(start);
    start += strlen("```json\n");
    char *end = strstr(start, "```");
    assert_non_null(end);
    *end = '\0';
    snprintf(path, sizeof path, "%s/deeps.json", programs.examples);
    char *shipped = files_read(path, &bytes);
    assert_non_null(shipped);
    assert_string_equal(shipped, start);
    programs_run *run = programs_train_config(2, start, "");
    programs_expect_success(run);
    assert_int_equal(run->steps, 8);
    programs_free(run);
    free(shipped);
    free(document);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, files_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(the_version_is_told),
        TEST(any_number_of_ranks_takes_the_same_steps),
        TEST(all_stages_of_zero_take_the_same_steps),
        TEST(networks_of_layers_take_the_same_steps_on_any_ranks),
        TEST(a_skipped_update_does_not_move_the_schedule),
        TEST(reports_tell_of_time_memory_and_partition),
        TEST(an_epoch_has_ten_lines_at_most),
        TEST(the_configuration_says_how_often_lines_come),
        TEST(more_ranks_than_cores_are_told),
        TEST(more_readers_than_cores_are_told),
        TEST(metrics_that_are_there_stop_the_run),
        TEST(wrong_options_are_told_once),
        TEST(ranks_that_do_not_divide_the_data_repeat_a_few_samples),
        TEST(ranks_that_do_not_divide_the_data_may_leave_samples_out),
        TEST(too_few_samples_are_refused),
        TEST(a_network_learns_and_says_its_accuracy_last),
        TEST(deepspeeds_options_are_accepted),
        TEST(lines_show_the_momentum_in_force),
        TEST(a_group_may_have_a_rate_of_its_own),
        TEST(max_steps_goes_on_over_epochs),
        TEST(a_large_micro_batch_takes_no_more_memory_than_its_samples),
        TEST(compat_0_13_starts_at_the_optimizers_rate),
        TEST(compat_0_13_has_one_order_for_all_epochs),
        TEST(ranks_must_have_the_same_settings),
        TEST(ranks_must_have_the_same_data),
        TEST(errors_of_setting_up_are_told_once),
        TEST(wrong_options_are_refused),
        TEST(a_diverging_run_stops_all_ranks_with_one_text),
        TEST(the_last_updates_parameters_must_be_finite),
        TEST(metrics_that_cannot_be_written_fail_after_the_accuracy),
        TEST(standard_output_that_cannot_be_written_is_a_failure),
        TEST(the_shipped_configuration_is_the_documents_byte_for_byte),
    };
    if (argc != 4)
        return 2;
    programs = (programs_paths){.bin = argv[1], .examples = argv[2], .shared = argv[3]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
