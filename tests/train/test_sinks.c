/* SPDX-License-Identifier: Apache-2.0
 * DeepSpeed's monitors and the file of epoch losses, read by readers that know only the formats. */
#include "check.h"
#include "files.h"

#include <cjson/cJSON.h>
#include <errors.h>
#include <glob.h>
#include <report.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static train_config config(void)
{
    train_config settings = {.optimizer = {.kind = OPTIMIZER_SGD}, .steps_per_print = 1000};
    monitor_config *monitors[] = {&settings.csv, &settings.tensorboard};
    for (size_t i = 0; i < COUNT_OF(monitors); i++) {
        snprintf(monitors[i]->output_path, sizeof monitors[i]->output_path, "%s/%zu/sub",
                 files_path(""), i);
        snprintf(monitors[i]->job_name, sizeof monitors[i]->job_name, "job");
    }
    return settings;
}

static ring_status start(train_report *report, const train_config *settings, const char *losses)
{
    return report_open(report, true,
                       &(report_run){.config = settings,
                                     .options = {.epoch_losses_path = losses},
                                     .ranks = 1,
                                     .epochs = 2,
                                     .steps_per_epoch = 2,
                                     .steps = 4});
}

/* Two epochs of two updates of 64 samples. */
static void run(const train_config *settings, const char *losses)
{
    train_report report;
    assert_int_equal(start(&report, settings, losses), RING_OK);
    for (int epoch = 1; epoch <= 2; epoch++) {
        for (long step = 2 * epoch - 1; step <= 2 * epoch; step++)
            report_update(&report, &(report_step){.step = step,
                                                  .epoch = epoch,
                                                  .loss = 1.0 / (double)step,
                                                  .next_lr = 0.001 * (double)step,
                                                  .samples = 64,
                                                  .all_samples = 64 * step,
                                                  .micro_batches = 1,
                                                  .loss_scale = step == 3 ? 512 : 0,
                                                  .seconds = 1,
                                                  .times = {.parts = {[PART_FORWARD] = 0.25}}});
        report_end_epoch(&report, &(report_epoch){.epoch = epoch,
                                                  .loss = 0.5 / epoch,
                                                  .accuracy = 0.75,
                                                  .test_loss = 1.5 / epoch,
                                                  .all_samples = 128 * epoch});
    }
    assert_int_equal(report_close(&report), RING_OK);
}

static void expect_file(const char *name, const char *want)
{
    size_t bytes;
    char *text = files_read(files_path(name), &bytes);
    if (text == NULL)
        fail_msg("no file %s", name);
    assert_string_equal(text, want);
    free(text);
}

/* As csv.writer() of Python writes it: lines end with \r\n. */
static void csv_files_are_deepspeeds(void **state)
{
    train_config settings = config();
    settings.csv.enabled = true;
    run(&settings, NULL);
    expect_file("0/sub/job/Train_Samples_lr.csv",
                "step,lr\r\n64,0.001\r\n128,0.002\r\n192,0.003\r\n256,0.004\r\n");
    expect_file("0/sub/job/Train_Samples_train_loss.csv",
                "step,train_loss\r\n64,1.0\r\n128,0.5\r\n192,0.3333333333333333\r\n256,0.25\r\n");
    expect_file("0/sub/job/Test_Samples_accuracy.csv", "step,accuracy\r\n128,0.75\r\n256,0.75\r\n");
    expect_file("0/sub/job/Test_Samples_test_loss.csv",
                "step,test_loss\r\n128,1.5\r\n256,0.75\r\n");
    expect_file("0/sub/job/Train_Samples_loss_scale.csv", "step,loss_scale\r\n192,512.0\r\n");
    assert_int_equal(access(files_path("0/sub/job/Train_Samples_elapsed_time_ms_forward.csv"),
                            F_OK),
                     -1);
    settings.wall_clock_breakdown = true;
    run(&settings, NULL); /* appends to the first run's files */
    expect_file("0/sub/job/Train_Samples_elapsed_time_ms_forward.csv",
                "step,elapsed_time_ms_forward\r\n64,250.0\r\n128,250.0\r\n192,250.0\r\n256,"
                "250.0\r\n");
    expect_file("0/sub/job/Test_Samples_accuracy.csv",
                "step,accuracy\r\n128,0.75\r\n256,0.75\r\nstep,accuracy\r\n128,0.75\r\n256,"
                "0.75\r\n");
}

/* ---- TensorBoard --------------------------------------------------------------------------- */

/* CRC-32C by its table, as the RFC of iSCSI has it. */
static uint32_t crc32c(const uint8_t *data, size_t bytes)
{
    uint32_t table[256], crc = 0xffffffffU;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int k = 0; k < 8; k++)
            table[i] = (table[i] & 1) != 0 ? (table[i] >> 1) ^ 0x82f63b78U : table[i] >> 1;
    }
    for (size_t i = 0; i < bytes; i++)
        crc = table[(crc ^ data[i]) & 0xff] ^ (crc >> 8);
    return crc ^ 0xffffffffU;
}

static void the_oracle_knows_the_check_value(void **state)
{
    assert_int_equal(crc32c((const uint8_t *)"123456789", 9), 0xe3069283U);
}

typedef struct reader {
    const uint8_t *at, *end;
} reader;

static uint64_t take(reader *from, int bytes)
{
    uint64_t value = 0;
    assert_true(from->end - from->at >= bytes);
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)*from->at++ << (8 * i);
    return value;
}

static uint64_t take_varint(reader *from)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        const uint8_t byte = (uint8_t)take(from, 1);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

static reader take_bytes(reader *from)
{
    const uint64_t length = take_varint(from);
    assert_true((uint64_t)(from->end - from->at) >= length);
    const reader part = {from->at, from->at + length};
    from->at += length;
    return part;
}

typedef struct scalar {
    double wall;
    long step;
    char version[32], tag[80];
    float value;
} scalar;

static void copy(reader from, char *to, size_t room)
{
    const size_t length = (size_t)(from.end - from.at);
    assert_true(length < room);
    memcpy(to, from.at, length);
    to[length] = '\0';
}

static void read_value(reader from, scalar *out)
{
    while (from.at < from.end) {
        const uint64_t key = take_varint(&from);
        if (key == (1 << 3 | 2)) {
            copy(take_bytes(&from), out->tag, sizeof out->tag);
        } else {
            assert_int_equal(key, 2 << 3 | 5);
            const uint32_t bits = (uint32_t)take(&from, 4);
            memcpy(&out->value, &bits, 4);
        }
    }
}

static void read_event(reader from, scalar *out)
{
    while (from.at < from.end) {
        const uint64_t key = take_varint(&from);
        if (key == (1 << 3 | 1)) {
            const uint64_t bits = take(&from, 8);
            memcpy(&out->wall, &bits, 8);
        } else if (key == 2 << 3) {
            out->step = (long)take_varint(&from);
        } else if (key == (3 << 3 | 2)) {
            copy(take_bytes(&from), out->version, sizeof out->version);
        } else {
            assert_int_equal(key, 5 << 3 | 2);
            reader summary = take_bytes(&from);
            assert_int_equal(take_varint(&summary), 1 << 3 | 2);
            read_value(take_bytes(&summary), out);
            assert_ptr_equal(summary.at, summary.end);
        }
    }
}

static uint32_t unmask(uint64_t masked)
{
    const uint32_t rotated = (uint32_t)masked - 0xa282ead8U;
    return rotated >> 17 | rotated << 15;
}

static scalar read_record(reader *from)
{
    scalar out = {0};
    const uint8_t *length_at = from->at;
    const uint64_t length = take(from, 8);
    assert_int_equal(unmask(take(from, 4)), crc32c(length_at, 8));
    assert_true((uint64_t)(from->end - from->at) >= length);
    const reader data = {from->at, from->at + length};
    from->at += length;
    assert_int_equal(unmask(take(from, 4)), crc32c(data.at, length));
    read_event(data, &out);
    assert_true(out.wall > 1.6e9);
    return out;
}

static void expect_scalar(const scalar *got, const char *tag, long step, float value)
{
    assert_string_equal(got->tag, tag);
    assert_int_equal(got->step, step);
    assert_memory_equal(&got->value, &value, sizeof value);
}

static void event_files_are_tensorboards(void **state)
{
    train_config settings = config();
    settings.tensorboard.enabled = true;
    run(&settings, NULL);
    glob_t found;
    size_t bytes;
    assert_int_equal(glob(files_path("1/sub/job/events.out.tfevents.*"), 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    char *file = files_read(found.gl_pathv[0], &bytes);
    globfree(&found);
    reader from = {(const uint8_t *)file, (const uint8_t *)file + bytes};
    assert_string_equal(read_record(&from).version, "brain.Event:2");
    for (long step = 1; step <= 4; step++) {
        scalar got = read_record(&from);
        expect_scalar(&got, "Train/Samples/train_loss", 64 * step, (float)(1.0 / (double)step));
        got = read_record(&from);
        expect_scalar(&got, "Train/Samples/lr", 64 * step, (float)(0.001 * (double)step));
        if (step == 3) {
            got = read_record(&from);
            expect_scalar(&got, "Train/Samples/loss_scale", 64 * step, 512.0F);
        }
        if (step % 2 == 0) {
            got = read_record(&from);
            expect_scalar(&got, "Test/Samples/accuracy", 64 * step, 0.75F);
            got = read_record(&from);
            expect_scalar(&got, "Test/Samples/test_loss", 64 * step, 3.0F / (float)step);
        }
    }
    assert_ptr_equal(from.at, from.end);
    free(file);
}

/* ---- The others ---------------------------------------------------------------------------- */

static void wandbs_lines_are_json(void **state)
{
    char before[4096];
    size_t bytes;
    glob_t found;
    train_config settings = config();
    settings.wandb = (wandb_config){.enabled = true, .team = "us", .project = "P", .group = "\"g"};
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(files_path("")), 0);
    run(&settings, NULL);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(glob(files_path("wandb/P/run-*.jsonl"), 0, NULL, &found), 0);
    char *text = files_read(found.gl_pathv[0], &bytes), *rest = text;
    globfree(&found);
    assert_string_equal(strsep(&rest, "\n"),
                        "{\"project\": \"P\", \"entity\": \"us\", \"group\": \"\\\"g\"}");
    cJSON *line = cJSON_Parse(strsep(&rest, "\n"));
    assert_int_equal(cJSON_GetObjectItem(line, "_step")->valueint, 64);
    assert_near(cJSON_GetObjectItem(line, "Train/Samples/lr")->valuedouble, 0.001, 0, 0);
    cJSON_Delete(line);
    free(text);
}

static void epoch_losses_are_one_object(void **state)
{
    const train_config settings = config();
    run(&settings, files_path("losses.json"));
    expect_file("losses.json",
                "{\"epoch_1\": {\"outputs\": 0.5}, \"epoch_2\": {\"outputs\": 0.25}}\n");
}

/* As a run that is resumed at the start of an epoch; an unfinished one is done again. */
static void resume_losses(int epoch)
{
    train_report report;
    const train_config settings = config();
    const report_run resumed = {.config = &settings,
                                .options = {.epoch_losses_path = files_path("losses.json"),
                                            .resumed = true},
                                .ranks = 1,
                                .epochs = 3,
                                .steps_per_epoch = 2,
                                .steps = 6};
    assert_int_equal(report_open(&report, true, &resumed), RING_OK);
    report_end_epoch(&report, &(report_epoch){.epoch = epoch, .loss = 0.125});
    assert_int_equal(report_close(&report), RING_OK);
}

static void resumed_runs_keep_the_epochs_before(void **state)
{
    resume_losses(2); /* without a file */
    expect_file("losses.json", "{\"epoch_2\": {\"outputs\": 0.125}}\n");
    files_write("losses.json", "", 0);
    const train_config settings = config();
    run(&settings, files_path("losses.json"));
    resume_losses(3);
    expect_file("losses.json", "{\"epoch_1\": {\"outputs\": 0.5}, \"epoch_2\": {\"outputs\": "
                               "0.25}, \"epoch_3\": {\"outputs\": 0.125}}\n");
    resume_losses(2);
    expect_file("losses.json",
                "{\"epoch_1\": {\"outputs\": 0.5}, \"epoch_2\": {\"outputs\": 0.125}}\n");
    resume_losses(1);
    expect_file("losses.json", "{\"epoch_1\": {\"outputs\": 0.125}}\n");
}

static void other_files_are_no_losses(void **state)
{
    train_report report;
    const train_config settings = config();
    files_write("losses.json", "{\"epochs\": [1, 2, 3]}\n", 23);
    assert_int_equal(report_open(&report, true,
                                 &(report_run){.config = &settings,
                                               .options = {.epoch_losses_path = files_path(
                                                               "losses.json"),
                                                           .resumed = true},
                                               .ranks = 1,
                                               .epochs = 1,
                                               .steps_per_epoch = 1,
                                               .steps = 1}),
                     RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(), "was not written by this option"));
    report_close(&report);
}

static void folders_that_cannot_be_made_are_known_at_once(void **state)
{
    train_report report;
    train_config settings = config();
    settings.csv.enabled = true;
    files_write("0", "", 0);
    assert_int_equal(start(&report, &settings, NULL), RING_ERR_SYSTEM);
    assert_non_null(strstr(train_error(), "csv_monitor "));
    assert_non_null(strstr(train_error(), "/0/sub/job: "));
    report_close(&report);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_set_up, files_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oracle_knows_the_check_value),
        TEST(csv_files_are_deepspeeds),
        TEST(event_files_are_tensorboards),
        TEST(wandbs_lines_are_json),
        TEST(epoch_losses_are_one_object),
        TEST(resumed_runs_keep_the_epochs_before),
        TEST(other_files_are_no_losses),
        TEST(folders_that_cannot_be_made_are_known_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
