/* SPDX-License-Identifier: Apache-2.0
 * How data come to the ranks of ringtrain changes no bit: one copy for a host or one for each rank,
 * with threads that read ahead or without. */
#include "check.h"
#include "files.h"
#include "programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char settings[] = "{\"train_micro_batch_size_per_gpu\": 8,"
                               " \"gradient_accumulation_steps\": 2, \"memory_breakdown\": true,"
                               " \"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 0.05}}}";

/* 300 samples leave a short micro-batch and a short update. */
static int set_up(void **state)
{
    (void)files_set_up(state);
    files_dataset(300, 40);
    files_write("config.json", settings, sizeof settings - 1);
    return 0;
}

/* @return rank 0's parameters of a run of 2 ranks, to be free()d. */
static char *train(const char *data, const char *options, const char *expected, size_t *bytes)
{
    programs_run *run = programs_shell(
        "%s/ringrun -n 2 sh -c 'exec %s/ringtrain --deepspeed_config %s --data %s --epochs 2 "
        "--dump-params %s %s'",
        programs.bin, programs.bin, files_path("config.json"), data, files_path("params"), options);
    programs_expect_success(run);
    programs_expect_output(run, expected);
    programs_free(run);
    char *params = files_read(files_path("params.0"), bytes);
    assert_non_null(params);
    return params;
}

static void expect_same(const char *data, const char *options, const char *expected)
{
    size_t bytes, first_bytes;
    char *first = train(files_path("."), "", "in memory, shared by the ranks of a host",
                        &first_bytes);
    char *params = train(data, options, expected, &bytes);
    assert_int_equal(bytes, first_bytes);
    assert_memory_equal(params, first, bytes);
    free(first);
    free(params);
}

static void ranks_with_folders_of_their_own_have_their_own_copy(void **state)
{
    static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
    char data[600];
    programs_free(programs_shell("mkdir %s", files_path("other1")));
    for (size_t i = 0; i < COUNT_OF(names); i++)
        programs_free(programs_shell("cp %s* %s/", files_path(names[i]), files_path("other1")));
    assert_int_equal(symlink(files_path("."), files_path("other0")), 0);
    snprintf(data, sizeof data, "%s$RANK", files_path("other"));
    expect_same(data, "", "in memory, on each rank");
}

static void threads_that_read_ahead_change_no_bit(void **state)
{
    expect_same(files_path("."), "-j 1", "data: ");
    expect_same(files_path("."), "--workers 3", "data: ");
}

static void a_file_that_one_rank_cannot_read_ends_all(void **state)
{
    files_write("t10k-labels-idx1-ubyte", "no", 2);
    programs_run *run =
        programs_shell("%s/ringrun -n 2 %s/ringtrain --deepspeed_config %s --data %s 2>&1",
                       programs.bin, programs.bin, files_path("config.json"), files_path("."));
    assert_int_not_equal(run->status, 0);
    programs_expect_output(run,
                           "t10k-labels-idx1-ubyte: the file ends too early; download it again");
    assert_null(strstr(run->output, "another rank"));
    programs_free(run);
}

static void normalized_images_are_told_and_learned_from(void **state)
{
    size_t bytes, first_bytes;
    char *first = train(files_path("."), "", "data: ", &first_bytes);
    char *params = train(files_path("."), "--normalize 0.130700/0.3081 -j 1",
                         "images are normalized, mean/std 0.1307/0.3081\n", &bytes);
    assert_int_equal(bytes, first_bytes);
    assert_memory_not_equal(params, first, bytes);
    free(first);
    free(params);
}

static void resumed_runs_tell_another_normalization(void **state)
{
    size_t bytes;
    char options[700];
    snprintf(options, sizeof options, "--normalize 0.5/0.5 --save %s", files_path("saved"));
    free(train(files_path("."), options, "data: ", &bytes));
    unlink(files_path("params.0"));
    snprintf(options, sizeof options, "--epochs 3 --resume %s", files_path("saved"));
    free(train(files_path("."), options, "--normalize is none, was 0.5/0.5", &bytes));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ranks_with_folders_of_their_own_have_their_own_copy, set_up,
                                        files_tear_down),
        cmocka_unit_test_setup_teardown(threads_that_read_ahead_change_no_bit, set_up,
                                        files_tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_one_rank_cannot_read_ends_all, set_up,
                                        files_tear_down),
        cmocka_unit_test_setup_teardown(normalized_images_are_told_and_learned_from, set_up,
                                        files_tear_down),
        cmocka_unit_test_setup_teardown(resumed_runs_tell_another_normalization, set_up,
                                        files_tear_down),
    };
    if (argc < 4) {
        fprintf(stderr, "usage: test_data_path BIN EXAMPLES SHARED\n");
        return 1;
    }
    programs = (programs_paths){.bin = argv[1], .examples = argv[2], .shared = argv[3]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
