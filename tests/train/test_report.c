/* SPDX-License-Identifier: Apache-2.0
 * Numbers as Python prints them, the log lines, the metrics file, the dump of parameters. */
#include "check.h"
#include "files.h"

#include <cjson/cJSON.h>
#include <device_use.h>
#include <errno.h>
#include <errors.h>
#include <fcntl.h>
#include <floats.h>
#include <params_dump.h>
#include <report.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void floats_print_as_in_python(void **state)
{
    static const struct {
        double value;
        const char *text;
    } vectors[] = {
        {0.0, "0.0"},
        {1.0, "1.0"},
        {0.1, "0.1"},
        {0.01, "0.01"},
        {4.5e-07, "4.5e-07"},
        {1e-05, "1e-05"},
        {0.0001, "0.0001"},
        {123456789.0, "123456789.0"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e+16"},
        {1.5e300, "1.5e+300"},
        {0.30000000000000004, "0.30000000000000004"},
        {2.0 / 3.0, "0.6666666666666666"},
        {-0.5, "-0.5"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {(double)INFINITY, "inf"},
        {-(double)INFINITY, "-inf"},
        {(double)NAN, "nan"},
    };
    for (size_t i = 0; i < COUNT_OF(vectors); i++) {
        char text[FLOAT_TEXT_MAX];
        assert_string_equal(float_repr(vectors[i].value, text), vectors[i].text);
    }
}

static const train_config config = {
    .optimizer = {.kind = OPTIMIZER_SGD},
    .steps_per_print = 2,
    .accumulation = 1,
};

static ring_status open_report(train_report *report, bool on, const train_config *settings,
                               const report_options *options)
{
    return report_open(report, on,
                       &(report_run){.config = settings,
                                     .options = *options,
                                     .ranks = 2,
                                     .epochs = 4,
                                     .steps_per_epoch = 3,
                                     .steps = 12});
}

static report_times times = {
    .parts = {[PART_DATA] = 0.01,
              [PART_FORWARD] = 0.1,
              [PART_BACKWARD] = 0.2,
              [PART_STEP] = 0.03,
              [PART_WAIT] = 0.1,
              [PART_TRANSFER] = 0.004,
              [PART_REDUCE] = 0.016,
              [PART_OTHER] = 0.04},
    .details = {[DETAIL_SEND] = 0.002,
                [DETAIL_RECV] = 0.028,
                [DETAIL_TIES] = 0.006,
                [DETAIL_NORM] = 0.01,
                [DETAIL_CHECK] = 0.001},
    .reduce_wait = 0.064,
    .reducing = 0.32,
};

/* Runs three updates and an epoch's end with standard output in a file. @return what was printed.
 */
static char *printed_with(const train_config *settings, const report_options *options)
{
    train_report report;
    size_t bytes;
    const report_device devices[2] = {{.resident = 3 << 20, .peak = 4 << 20, .cpu = 0.5},
                                      {.resident = 5 << 20, .peak = 6 << 20, .cpu = 1.0}};
    const report_memory memory[2] = {{.parameters = 40}, {.parameters = 41, .batch = 7}};
    fflush(stdout);
    const int kept = dup(STDOUT_FILENO);
    assert_non_null(freopen(files_path("out"), "w", stdout));
    assert_int_equal(open_report(&report, true, settings, options), RING_OK);
    report_start_run(&report, &(report_start){.model = "a \"b\\\n",
                                              .loss = "mse",
                                              .maths = "none",
                                              .parameters = 10,
                                              .memory = memory});
    for (long step = 1; step <= 3; step++)
        report_update(&report, &(report_step){.step = step,
                                              .epoch = 1,
                                              .epoch_step = step,
                                              .loss = 0.1 / 3,
                                              .grad_norm = 2.5,
                                              .lr = 0.01,
                                              .next_lr = 4.5e-07,
                                              .next_other_lr = 1e-05,
                                              .next_betas = {0.9, 0.95},
                                              .samples = 128,
                                              .all_samples = 128 * step,
                                              .micro_batches = 1,
                                              .all_micro_batches = step,
                                              .skipped = step / 2,
                                              .seconds = 0.5,
                                              .times = times});
    report_devices(&report, 3, devices);
    report_end_epoch(&report, &(report_epoch){.step = 3,
                                              .epoch = 1,
                                              .loss = 0.1 / 3,
                                              .accuracy = 0.25,
                                              .test_loss = 1.75,
                                              .samples = 384,
                                              .all_samples = 384,
                                              .seconds = 1.5,
                                              .test_seconds = 0.125,
                                              .times = times,
                                              .devices = devices});
    assert_int_equal(report_close(&report), RING_OK);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    char *text = files_read(files_path("out"), &bytes);
    assert_non_null(text);
    return text;
}

static char *printed(const train_config *settings, const char *metrics)
{
    return printed_with(settings, &(report_options){.metrics_path = metrics});
}

static void log_lines_have_deepspeeds_text(void **state)
{
    char *text = printed(&config, NULL);
    assert_non_null(strstr(text, "[Rank 0] step=2, skipped=1, lr=[4.5e-07], mom=[0]\n"));
    assert_non_null(
        strstr(text, "\nsteps: 2 loss: 0.0333 iter time (s): 0.500 samples/sec: 256.000\n"));
    assert_null(strstr(text, "SamplesPerSec"));
    assert_null(strstr(text, "step=1,"));
    assert_null(strstr(text, "step=3,"));
    free(text);
}

static void its_line_of_throughput_comes_if_asked_for(void **state)
{
    char *text = printed_with(&config, &(report_options){.style = LOG_DEEPSPEED});
    assert_non_null(
        strstr(text, "\nsteps: 2 loss: 0.0333 iter time (s): 0.500 samples/sec: 256.000\n"));
    assert_non_null(
        strstr(text, "[Rank 0] epoch=0/micro_step=2/global_step=2, RunningAvgSamplesPerSec=256.0, "
                     "CurrSamplesPerSec=256.0, MemAllocated="));
    assert_non_null(strstr(text, "GB, MaxMemAllocated="));
    free(text);
}

static void momentum_is_shown_as_the_optimizer_has_it(void **state)
{
    train_config other = config;
    other.optimizer.momentum = 0.9;
    char *text = printed(&other, NULL);
    assert_non_null(strstr(text, "mom=[0.9]\n"));
    free(text);
    other.optimizer = (optimizer_config){.kind = OPTIMIZER_ADAM, .betas = {0.8, 0.99}};
    text = printed(&other, NULL);
    assert_non_null(strstr(text, "mom=[[0.9, 0.95]]\n"));
    free(text);
    other.optimizer.groups = GROUPS_NO_DECAY;
    text = printed(&other, NULL);
    assert_non_null(strstr(text, "lr=[4.5e-07, 1e-05], mom=[[0.9, 0.95], [0.9, 0.95]]\n"));
    free(text);
    other.optimizer = (optimizer_config){.kind = OPTIMIZER_ADAGRAD};
    text = printed(&other, NULL);
    assert_non_null(strstr(text, "mom=[0.0]\n"));
    free(text);
}

static void breakdowns_add_up(void **state)
{
    train_config other = config;
    other.wall_clock_breakdown = true;
    char *text = printed(&other, NULL);
    assert_non_null(strstr(text, "time (ms) | fwd: 100.00 | bwd: 280.00 | bwd_inner: 200.00 | "
                                 "bwd_allreduce: 80.00 | step: 70.00\n"));
    assert_non_null(strstr(text, "time (ms) | fwd_microstep: 100.00 | bwd_microstep: 280.00 | "));
    assert_non_null(strstr(text, "time (%) | data: 2.0 | forward: 20.0 | backward: 40.0 | step: "
                                 "6.0 | wait: 20.0 | transfer: 0.8 | reduce: 3.2 | other: 8.0 | "
                                 "reduction hidden: 75.0\n"));
    assert_null(strstr(text, "bubble"));
    free(text);
    other.zero_stage = 3; /* parameters are gathered for the passes */
    text = printed(&other, NULL);
    assert_non_null(strstr(text, "time (ms) | fwd: 140.00 | bwd: 280.00 | bwd_inner: 200.00 | "
                                 "bwd_allreduce: 80.00 | step: 30.00\n"));
    free(text);
}

/* With stages, waiting for neighbours is a part of its own, in its place. */
static void stages_have_a_share_for_the_bubble(void **state)
{
    train_config other = config;
    other.wall_clock_breakdown = true;
    other.pipeline.stages = 2;
    const report_times kept = times;
    times.parts[PART_WAIT] -= 0.03;
    times.parts[PART_BUBBLE] += 0.03;
    char *text = printed(&other, NULL);
    assert_non_null(strstr(text, " | wait: 14.0 | bubble_wait: 6.0 | transfer: 0.8 | "));
    assert_non_null(strstr(text, "| bwd_allreduce: 80.00 | step: 40.00\n"));
    free(text);
    text = printed_with(&other, &(report_options){.style = LOG_NEOX});
    assert_non_null(strstr(text, ": %comms: 24.0\n"));
    assert_non_null(strstr(text, ": %wait: 14.0\n"));
    assert_non_null(strstr(text, ": %bubble_wait: 6.0\n"));
    assert_non_null(strstr(
        text, "rank=0 time (ms) | train_batch: 1000.00 | batch_input: 20.00 | forward: 200.00 | "
              "pipe_send_output: 4.00 | comms: 240.00 | pipe_recv_grad: 56.00 | backward: 400.00 | "
              "reduce_tied_grads: 12.00 | reduce_grads: 148.00 | step: 60.00 | _step_clipping: "
              "20.00 | _step_step: 38.00 | _step_check_overflow: 2.00\n"));
    free(text);
    times = kept;
}

static void shares_add_up_to_a_hundred(void **state)
{
    static const double rows[][PARTS] = {
        {1, 1, 1},
        {1e-9, 1e-9, 1e-9, 1e-9, 1e-9, 1e-9, 1e-9},
        {0.3335, 0.3335, 0.333},
        {1e300, 1},
        {0, 0, 0, 0, 0, 0, 0, 5},
    };
    int tenths[PARTS];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        report_times sample = {.reduce_wait = 0};
        int sum = 0;
        memcpy(sample.parts, rows[i], sizeof sample.parts);
        breakdown_tenths(&sample, tenths);
        for (int p = 0; p < PARTS; p++) {
            const double exact = 1000.0 * rows[i][p] / breakdown_total(&sample);
            assert_true(fabs(tenths[p] - exact) < 1.0);
            sum += tenths[p];
        }
        assert_int_equal(sum, 1000);
    }
    breakdown_tenths(&(report_times){.reducing = 1}, tenths);
    assert_int_equal(tenths[PART_OTHER], 0);
    assert_near(breakdown_overlap(&(report_times){.reducing = 0}), -1, 0, 0);
    assert_near(breakdown_overlap(&(report_times){.reducing = 1, .reduce_wait = 2}), 0, 0, 0);
}

static void other_styles_of_lines(void **state)
{
    train_config other = config;
    other.wall_clock_breakdown = true;
    char *text = printed_with(&config, &(report_options){.style = LOG_BRIEF});
    assert_non_null(strstr(text, "Rank[0]: Epoch 1, step 2 / 12, loss 0.0333\n"));
    assert_null(strstr(text, "samples/sec"));
    free(text);
    text = printed_with(&config, &(report_options){.style = LOG_TORCH});
    assert_non_null(strstr(text, "rank0, Epoch [1/4], Step [2/3], Loss: 0.0333\n"));
    free(text);
    text = printed_with(&other, &(report_options){.style = LOG_NEOX});
    const char *line = strstr(text, "steps: 2 loss: 0.0333");
    char date[16], time[16], host[80], first[80];
    assert_non_null(line);
    while (line > text && line[-1] != '\n')
        line--;
    assert_int_equal(sscanf(line, "%15s %15s [INFO] %79s %79s", date, time, host, first), 4);
    assert_int_equal(date[4] == '-' && time[8] == '.', true);
    assert_int_equal(host[strlen(host) - 1], ':');
    assert_string_equal(first, "steps:");
    assert_null(strstr(text, "SamplesPerSec"));
    assert_non_null(strstr(text, ": %comms: 24.0\n"));
    assert_non_null(strstr(text, ": %optimizer_step 6.0\n"));
    assert_non_null(strstr(text, ": %forward: 20.0\n"));
    assert_non_null(strstr(text, ": %backward: 40.0\n"));
    assert_null(strstr(text, "%step")); /* it is optimizer_step */
    assert_null(strstr(text, "%bubble_wait"));
    assert_non_null(
        strstr(text, "rank=0 time (ms) | train_batch: 1000.00 | batch_input: 20.00 | forward: "
                     "200.00 | comms: 240.00 | backward: 400.00 | reduce_grads: "));
    assert_non_null(strstr(text, "| step: 60.00 | _step_clipping: 20.00 | _step_step: 38.00 | "));
    assert_null(strstr(text, "pipe_"));
    assert_null(strstr(text, "reduce_tied_grads"));
    free(text);
}

static void devices_are_a_line(void **state)
{
    char *text = printed(&config, NULL);
    assert_non_null(strstr(text, "\nupdate 3 | rank 0: 3.0 MiB, CPU 50 % | rank 1: 5.0 MiB, CPU "
                                 "100 %\n"));
    free(text);
}

static long counted_peak; /* KiB */

/* The kernel counts a peak some pages late. */
int getrusage(__rusage_who_t who, struct rusage *usage)
{
    (void)who;
    *usage = (struct rusage){.ru_maxrss = counted_peak};
    return 0;
}

static void a_peak_is_never_below_what_is_resident(void **state)
{
    device_clock clock = {0};
    const report_device late = device_use(&clock);
    assert_true(late.resident > 0);
    assert_near(late.peak, late.resident, 0, 0);
    counted_peak = 1L << 40;
    assert_near(device_use(&clock).peak, 1024.0 * (double)counted_peak, 0, 0);
}

/* A terminal hands out what was written to it in pieces; the caller's '\a' is the last. */
static void read_up_to_the_bell(int terminal, char *shown, size_t room)
{
    size_t got = 0;
    do {
        const ssize_t more = read(terminal, shown + got, room - 1 - got);
        assert_true(more > 0);
        got += (size_t)more;
    } while (shown[got - 1] != '\a');
    shown[got - 1] = '\0';
}

/* Makes standard error a terminal. @return its output, static, ended by NUL. */
static const char *shown_on_a_terminal(train_report *report, unsigned short columns)
{
    static char shown[4096];
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY), kept = dup(STDERR_FILENO);
    assert_int_equal(grantpt(terminal) | unlockpt(terminal), 0);
    const int end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_int_equal(ioctl(end, TIOCSWINSZ, &size), 0);
    dup2(end, STDERR_FILENO);
    assert_int_equal(open_report(report, true, &config, &(report_options){NULL}), RING_OK);
    report_update(report, &(report_step){.step = 6,
                                         .epoch = 2,
                                         .epoch_step = 3,
                                         .loss = 0.5,
                                         .samples = 10,
                                         .seconds = 600});
    report_line(report, "a line");
    dup2(kept, STDERR_FILENO);
    close(kept);
    assert_int_equal(write(end, "\a", 1), 1);
    read_up_to_the_bell(terminal, shown, sizeof shown);
    assert_int_equal(report_close(report), RING_OK);
    close(end);
    close(terminal);
    return shown;
}

/* Half of 12 updates, of which this run made one in ten minutes; a line wipes it away. */
static void a_terminal_has_a_bar(void **state)
{
    train_report report;
    assert_string_equal(shown_on_a_terminal(&report, 100),
                        "\r[##########..........] epoch 2/4  update 3/3  loss 0.5000  lr 0  0 "
                        "samples/s  1:00:00 left\033[K\r\033[K");
    assert_string_equal(shown_on_a_terminal(&report, 60),
                        "\r[##########..........] epoch 2/4  update 3/3  loss 0.5000  "
                        "\033[K\r\033[K");
}

/* @return the @p number-th line of the metrics, from 0, parsed. */
static cJSON *metrics_line(int number)
{
    size_t bytes;
    char *text = files_read(files_path("metrics"), &bytes), *rest = text, *line = NULL;
    for (int i = 0; i <= number; i++)
        line = strsep(&rest, "\n");
    cJSON *object = cJSON_Parse(line);
    assert_non_null(object);
    free(text);
    return object;
}

static const cJSON *member(const cJSON *object, const char *name)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);
    if (value == NULL)
        fail_msg("no member %s", name);
    return value;
}

static void metrics_tell_the_run_and_its_epochs(void **state)
{
    free(printed(&config, files_path("metrics")));
    cJSON *line = metrics_line(0);
    const cJSON *run = member(line, "run");
    assert_string_equal(member(run, "model")->valuestring, "a \"b\\\n");
    assert_int_equal(member(run, "updates")->valueint, 12);
    assert_int_equal(member(cJSON_GetArrayItem(member(run, "memory"), 1), "batch")->valueint, 7);
    assert_string_equal(member(member(run, "config"), "steps_per_print")->valuestring, "2");
    cJSON_Delete(line);
    line = metrics_line(4);
    assert_int_equal(member(line, "after_step")->valueint, 3);
    assert_int_equal(
        (long)member(cJSON_GetArrayItem(member(line, "devices"), 0), "peak")->valuedouble, 4 << 20);
    cJSON_Delete(line);
    line = metrics_line(5);
    assert_near(member(line, "accuracy")->valuedouble, 0.25, 0, 0);
    assert_near(member(line, "test_loss")->valuedouble, 1.75, 0, 0);
    assert_near(member(line, "samples_per_s")->valuedouble, 256, 0, 0);
    assert_near(member(line, "overlap")->valuedouble, 0.75, 0, 0);
    assert_near(member(member(line, "seconds"), "wait")->valuedouble, 0.1, 0, 0);
    cJSON_Delete(line);
}

static void metrics_tell_the_passes_of_stages(void **state)
{
    train_report report;
    const report_options options = {.metrics_path = files_path("metrics")};
    const report_passes passes = {.step = 3,
                                  .stages = 2,
                                  .micro_batches = 1,
                                  .measured = (const double[]){0, 1, 2, 4, 1, 1.5, 1.5, 2},
                                  .predicted = (const int[]){1, 4, 2, 3}};
    assert_int_equal(open_report(&report, true, &config, &options), RING_OK);
    report_pipeline(&report, &passes);
    assert_int_equal(report_close(&report), RING_OK);
    cJSON *line = metrics_line(0);
    char *text = cJSON_PrintUnformatted(line);
    assert_string_equal(text,
                        "{\"pipeline\":{\"step\":3,\"stages\":2,\"micro_batches\":1,"
                        "\"span\":4,\"busy\":[3,1],\"measured\":[[[0,1,2,4]],[[1,1.5,1.5,2]]],"
                        "\"predicted\":[[[1,4]],[[2,3]]]}}");
    free(text);
    cJSON_Delete(line);
}

static void metrics_that_are_there_are_kept(void **state)
{
    train_report report;
    size_t bytes;
    files_write("metrics", "old\n", 4);
    report_options options = {.metrics_path = files_path("metrics")};
    assert_int_equal(open_report(&report, true, &config, &options), RING_ERR_SYSTEM);
    assert_non_null(strstr(train_error(), "/metrics already exists; give another name, remove "
                                          "it, or add --append-metrics"));
    report_close(&report);
    options.append_metrics = true;
    free(printed_with(&config, &options));
    char *text = files_read(files_path("metrics"), &bytes);
    assert_int_equal(strncmp(text, "old\n{\"run\": {", 13), 0);
    free(text);
    options = (report_options){.epoch_losses_path = files_path("metrics")};
    assert_int_equal(open_report(&report, true, &config, &options), RING_ERR_SYSTEM);
    report_close(&report);
}

static void numbers_without_end_are_null(void **state)
{
    train_report report;
    assert_int_equal(open_report(&report, true, &config,
                                 &(report_options){.metrics_path = files_path("metrics")}),
                     RING_OK);
    report_update(&report, &(report_step){.step = 1,
                                          .epoch = 1,
                                          .loss = (double)NAN,
                                          .grad_norm = (double)INFINITY,
                                          .samples = 1,
                                          .seconds = 1});
    assert_int_equal(report_close(&report), RING_OK);
    cJSON *line = metrics_line(0);
    assert_true(cJSON_IsNull(member(line, "loss")));
    assert_true(cJSON_IsNull(member(line, "grad_norm")));
    cJSON_Delete(line);
}

static void every_line_of_the_metrics_is_written_at_once(void **state)
{
    train_report report;
    size_t bytes;
    assert_int_equal(open_report(&report, true, &config,
                                 &(report_options){.metrics_path = files_path("metrics")}),
                     RING_OK);
    report_update(&report, &(report_step){.step = 1, .epoch = 1, .samples = 1, .seconds = 1});
    char *text = files_read(files_path("metrics"), &bytes);
    assert_true(bytes > 10 && text[bytes - 1] == '\n');
    free(text);
    report_close(&report);
}

static void metrics_are_one_json_line_an_update(void **state)
{
    files_write("metrics", "", 0);
    free(printed(&config, files_path("metrics")));
    size_t bytes;
    char *text = files_read(files_path("metrics"), &bytes);
    char *steps = strchr(text, '\n') + 1; /* after the run's line, before the devices' */
    *strstr(steps, "{\"after_step\"") = '\0';
    assert_string_equal(steps, "{\"step\": 1, \"epoch\": 1, \"loss\": 0.0333333333, \"lr\": 0.01, "
                               "\"grad_norm\": 2.5, \"samples_per_s\": 256}\n"
                               "{\"step\": 2, \"epoch\": 1, \"loss\": 0.0333333333, \"lr\": 0.01, "
                               "\"grad_norm\": 2.5, \"samples_per_s\": 256}\n"
                               "{\"step\": 3, \"epoch\": 1, \"loss\": 0.0333333333, \"lr\": 0.01, "
                               "\"grad_norm\": 2.5, \"samples_per_s\": 256}\n");
    free(text);
}

static void metrics_that_cannot_be_written_are_an_error(void **state)
{
    train_report report;
    report_options options = {.metrics_path = "/nowhere/m"};
    assert_int_equal(open_report(&report, true, &config, &options), RING_ERR_SYSTEM);
    assert_string_equal(train_error(), "--metrics /nowhere/m: No such file or directory");
    report_close(&report);
    options.metrics_path = "/dev/full";
    assert_int_equal(open_report(&report, true, &config, &options), RING_OK);
    for (long step = 1; step <= 2; step++)
        report_update(&report,
                      &(report_step){.step = step, .epoch = 1, .samples = 1, .seconds = 1});
    errno = ENOTTY; /* whatever came in between */
    assert_int_equal(report_close(&report), RING_ERR_SYSTEM);
    assert_string_equal(train_error(), "--metrics /dev/full: No space left on device");
}

static void other_ranks_are_silent(void **state)
{
    train_report report;
    const report_options options = {.metrics_path = files_path("none")};
    assert_int_equal(open_report(&report, false, &config, &options), RING_OK);
    report_update(&report, &(report_step){.step = 2, .seconds = 1});
    assert_int_equal(report_close(&report), RING_OK);
    assert_int_equal(access(files_path("none"), F_OK), -1);
}

static void the_dump_is_a_safetensors_file(void **state)
{
    tensor_table tensors;
    float params[4 * 3 + 3 + 3 * 2 + 2];
    for (size_t i = 0; i < COUNT_OF(params); i++)
        params[i] = (float)i;
    assert_int_equal(tensors_create(&tensors, 5), RING_OK);
    static const train_tensor shapes[] = {
        {.name = "0.weight", .shape = {3, 4}, .dims = 2, .tie = -1},
        {.name = "0.bias", .shape = {3}, .dims = 1, .tie = -1},
        {.name = "2.weight", .shape = {2, 3}, .dims = 2, .tie = -1},
        {.name = "3.weight", .shape = {2, 3}, .dims = 2, .tie = 2},
        {.name = "2.bias", .shape = {2}, .dims = 1, .tie = -1}};
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        assert_int_equal(tensors_add(&tensors, &shapes[i]), RING_OK);
    assert_int_equal(tensors.elements, COUNT_OF(params));
    output_file dump = {0};
    assert_int_equal(params_dump_open(&dump, files_path("p"), 3), RING_OK);
    assert_int_equal(access(files_path("p.3"), F_OK), -1);
    assert_int_equal(params_dump_write(&dump, &tensors, params), RING_OK);
    output_discard(&dump); /* leaves alone what is in place */
    size_t bytes;
    char *file = files_read(files_path("p.3"), &bytes);
    assert_non_null(file);
    uint64_t length;
    memcpy(&length, file, sizeof length);
    assert_int_equal(length % 8, 0);
    assert_int_equal(bytes, 8 + length + sizeof params);
    assert_memory_equal(file + 8 + length, params, sizeof params);
    cJSON *header = cJSON_ParseWithLength(file + 8, length);
    const cJSON *tensor = cJSON_GetObjectItemCaseSensitive(header, "2.weight");
    assert_non_null(tensor);
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(tensor, "dtype")->valuestring, "F32");
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(tensor, "shape");
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(tensor, "data_offsets");
    assert_int_equal(cJSON_GetArrayItem(shape, 0)->valueint, 2);
    assert_int_equal(cJSON_GetArrayItem(shape, 1)->valueint, 3);
    assert_int_equal(cJSON_GetArrayItem(offsets, 0)->valueint, 60);
    assert_int_equal(cJSON_GetArrayItem(offsets, 1)->valueint, 84);
    assert_int_equal(cJSON_GetArraySize(header),
                     5); /* four tensors, not the tied one, and the metadata */
    cJSON_Delete(header);
    free(file);
    tensors_free(&tensors);
}

static void a_dump_that_cannot_be_is_known_at_once(void **state)
{
    output_file dump = {0};
    assert_int_equal(params_dump_open(&dump, "/nowhere/p", 0), RING_ERR_SYSTEM);
    assert_string_equal(train_error(), "--dump-params /nowhere/p.0: No such file or directory");
    assert_int_equal(mkdir(files_path("p.0"), 0700), 0);
    assert_int_equal(params_dump_open(&dump, files_path("p"), 0), RING_ERR_SYSTEM);
    assert_non_null(strstr(train_error(), "/p.0: Is a directory"));
    assert_int_equal(rmdir(files_path("p.0")), 0);
    output_discard(&dump);
}

static void expect_private_file(const char *path)
{
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISREG(info.st_mode));
    assert_int_equal(info.st_mode & 07777, 0600);
}

/* Also where the name of an unfinished file could be guessed. */
static void links_are_not_followed_and_files_are_private(void **state)
{
    static const char *const places[] = {"p.0", "p.0.partial"};
    const float params[2] = {0};
    tensor_table tensors;
    output_file dump = {0};
    size_t bytes;
    files_write("other", "untouched", 9);
    for (size_t i = 0; i < COUNT_OF(places); i++)
        assert_int_equal(symlink(files_path("other"), files_path(places[i])), 0);
    assert_int_equal(tensors_create(&tensors, 1), RING_OK);
    assert_int_equal(
        tensors_add(&tensors,
                    &(train_tensor){.name = "0.weight", .shape = {2}, .dims = 1, .tie = -1}),
        RING_OK);
    assert_int_equal(params_dump_open(&dump, files_path("p"), 0), RING_OK);
    assert_int_equal(params_dump_write(&dump, &tensors, params), RING_OK);
    free(printed(&config, files_path("metrics")));
    expect_private_file(files_path("p.0"));
    expect_private_file(files_path("metrics"));
    char *text = files_read(files_path("other"), &bytes);
    assert_string_equal(text, "untouched");
    free(text);
    tensors_free(&tensors);
}

static void a_dump_that_is_given_up_leaves_nothing(void **state)
{
    output_file dump = {0};
    assert_int_equal(params_dump_open(&dump, files_path("p"), 0), RING_OK);
    output_discard(&dump);
    assert_int_equal(access(files_path("p.0"), F_OK), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_set_up, files_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_print_as_in_python),
        TEST(log_lines_have_deepspeeds_text),
        TEST(its_line_of_throughput_comes_if_asked_for),
        TEST(momentum_is_shown_as_the_optimizer_has_it),
        cmocka_unit_test(shares_add_up_to_a_hundred),
        TEST(breakdowns_add_up),
        TEST(stages_have_a_share_for_the_bubble),
        TEST(other_styles_of_lines),
        TEST(devices_are_a_line),
        cmocka_unit_test(a_peak_is_never_below_what_is_resident),
        TEST(a_terminal_has_a_bar),
        TEST(metrics_are_one_json_line_an_update),
        TEST(metrics_tell_the_run_and_its_epochs),
        TEST(metrics_tell_the_passes_of_stages),
        TEST(metrics_that_are_there_are_kept),
        TEST(numbers_without_end_are_null),
        TEST(every_line_of_the_metrics_is_written_at_once),
        TEST(metrics_that_cannot_be_written_are_an_error),
        TEST(other_ranks_are_silent),
        TEST(the_dump_is_a_safetensors_file),
        TEST(a_dump_that_cannot_be_is_known_at_once),
        TEST(a_dump_that_is_given_up_leaves_nothing),
        TEST(links_are_not_followed_and_files_are_private),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
