/* SPDX-License-Identifier: Apache-2.0
 * Numbers as Python prints them, the log lines, the metrics file, the dump of parameters. */
#include "check.h"
#include "files.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <errors.h>
#include <floats.h>
#include <params_dump.h>
#include <report.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void floats_print_as_in_python(void **state)
{
    (void)state;
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

/* Runs three updates with standard output in a file. @return what was printed. */
static char *printed(const train_config *settings, const char *metrics)
{
    train_report report;
    size_t bytes;
    fflush(stdout);
    const int kept = dup(STDOUT_FILENO);
    assert_non_null(freopen(files_path("out"), "w", stdout));
    assert_int_equal(report_open(&report, true, settings, metrics, 1, 3), RING_OK);
    for (long step = 1; step <= 3; step++)
        report_update(&report, &(report_step){.step = step,
                                              .epoch = 1,
                                              .loss = 0.1 / 3,
                                              .grad_norm = 2.5,
                                              .lr = 0.01,
                                              .next_lr = 4.5e-07,
                                              .samples = 128,
                                              .micro_batches = 1,
                                              .seconds = 0.5});
    assert_int_equal(report_close(&report), RING_OK);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    char *text = files_read(files_path("out"), &bytes);
    assert_non_null(text);
    return text;
}

static void log_lines_have_deepspeeds_text(void **state)
{
    (void)state;
    char *text = printed(&config, NULL);
    assert_non_null(strstr(text, "[Rank 0] step=2, skipped=0, lr=[4.5e-07], mom=[0]\n"));
    assert_non_null(
        strstr(text, "\nsteps: 2 loss: 0.0333 iter time (s): 0.500 samples/sec: 256.000\n"));
    assert_non_null(
        strstr(text, "[Rank 0] epoch=0/micro_step=2/global_step=2, RunningAvgSamplesPerSec=256, "
                     "CurrSamplesPerSec=256, MemAllocated="));
    assert_non_null(strstr(text, "GB, MaxMemAllocated="));
    assert_null(strstr(text, "step=1,"));
    assert_null(strstr(text, "step=3,"));
    free(text);
}

static void momentum_is_shown_as_the_optimizer_has_it(void **state)
{
    (void)state;
    train_config other = config;
    other.optimizer.momentum = 0.9;
    char *text = printed(&other, NULL);
    assert_non_null(strstr(text, "mom=[0.9]\n"));
    free(text);
    other.optimizer = (optimizer_config){.kind = OPTIMIZER_ADAM, .betas = {0.9, 0.95}};
    text = printed(&other, NULL);
    assert_non_null(strstr(text, "mom=[[0.9, 0.95]]\n"));
    free(text);
    strcpy(other.optimizer.param_groups, "no_decay");
    text = printed(&other, NULL);
    assert_non_null(strstr(text, "lr=[4.5e-07, 4.5e-07], mom=[[0.9, 0.95], [0.9, 0.95]]\n"));
    free(text);
    other.optimizer = (optimizer_config){.kind = OPTIMIZER_ADAGRAD};
    text = printed(&other, NULL);
    assert_non_null(strstr(text, "mom=[0.0]\n"));
    free(text);
}

static void metrics_are_one_json_line_an_update(void **state)
{
    (void)state;
    files_write("metrics", "old", 3);
    free(printed(&config, files_path("metrics")));
    size_t bytes;
    char *text = files_read(files_path("metrics"), &bytes);
    assert_string_equal(text, "{\"step\": 1, \"epoch\": 1, \"loss\": 0.0333333333, \"lr\": 0.01, "
                              "\"grad_norm\": 2.5, \"samples_per_s\": 256}\n"
                              "{\"step\": 2, \"epoch\": 1, \"loss\": 0.0333333333, \"lr\": 0.01, "
                              "\"grad_norm\": 2.5, \"samples_per_s\": 256}\n"
                              "{\"step\": 3, \"epoch\": 1, \"loss\": 0.0333333333, \"lr\": 0.01, "
                              "\"grad_norm\": 2.5, \"samples_per_s\": 256}\n");
    free(text);
}

static void metrics_that_cannot_be_written_are_an_error(void **state)
{
    (void)state;
    train_report report;
    assert_int_equal(report_open(&report, true, &config, "/nowhere/m", 1, 1), RING_ERR_SYSTEM);
    assert_string_equal(train_error(), "--metrics /nowhere/m: No such file or directory");
    assert_int_equal(report_open(&report, true, &config, "/dev/full", 1, 1), RING_OK);
    for (long step = 1; step <= 2; step++) /* the second one flushes */
        report_update(&report,
                      &(report_step){.step = step, .epoch = 1, .samples = 1, .seconds = 1});
    errno = ENOTTY; /* whatever came in between */
    assert_int_equal(report_close(&report), RING_ERR_SYSTEM);
    assert_string_equal(train_error(), "--metrics /dev/full: No space left on device");
}

static void other_ranks_are_silent(void **state)
{
    (void)state;
    train_report report;
    assert_int_equal(report_open(&report, false, &config, files_path("none"), 1, 1), RING_OK);
    report_update(&report, &(report_step){.step = 2, .seconds = 1});
    assert_int_equal(report_close(&report), RING_OK);
    assert_int_equal(access(files_path("none"), F_OK), -1);
}

static void the_dump_is_a_safetensors_file(void **state)
{
    (void)state;
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
    (void)state;
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
    (void)state;
    static const char *const places[] = {"metrics", "p.0", "p.0.partial"};
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
    (void)state;
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
        TEST(momentum_is_shown_as_the_optimizer_has_it),
        TEST(metrics_are_one_json_line_an_update),
        TEST(metrics_that_cannot_be_written_are_an_error),
        TEST(other_ranks_are_silent),
        TEST(the_dump_is_a_safetensors_file),
        TEST(a_dump_that_cannot_be_is_known_at_once),
        TEST(a_dump_that_is_given_up_leaves_nothing),
        TEST(links_are_not_followed_and_files_are_private),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
