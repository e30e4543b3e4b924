/* SPDX-License-Identifier: Apache-2.0
 * ringdigits: the same bytes from the same seed, in files that the trainer reads, and never
 * half a set. Arguments: folder of the programs, two folders that are not used here. */
#include "check.h"
#include "files.h"
#include "programs.h"

#include <idx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                    "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

/* Runs some shell commands, then ringdigits for the test's folder. */
static programs_run *draw(const char *before, const char *options)
{
    return programs_shell("%s %s/ringdigits %s %s 2>&1", before, programs.bin, options,
                          files_path(""));
}

/* Folds the four files into one number. */
static uint64_t hash_files(void)
{
    uint64_t hashes[COUNT_OF(names)];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        size_t bytes;
        char *data = files_read(files_path(names[i]), &bytes);
        assert_non_null(data);
        hashes[i] = fnv1a(data, bytes);
        free(data);
    }
    return fnv1a(hashes, sizeof hashes);
}

static uint64_t draw_well(const char *options)
{
    programs_run *run = draw("", options);
    programs_expect_success(run);
    programs_free(run);
    return hash_files();
}

static bool exists(const char *name, const char *suffix)
{
    char path[128];
    snprintf(path, sizeof path, "%s%s", name, suffix);
    return access(files_path(path), F_OK) == 0;
}

static void a_seed_gives_the_same_bytes_everywhere(void **state)
{
    const uint64_t first = draw_well("-n 50 -t 10");
    assert_int_equal(first, 0xc30a77fcb6250999U);
    assert_int_equal(draw_well("-n 50 -t 10"), first);
    assert_int_not_equal(draw_well("-n 50 -t 10 -s 2"), first);
}

/* Five files of training images, all different, and one of test images. */
static void cifars_files_have_records_of_label_and_planes(void **state)
{
    static const char *const batches[] = {"data_batch_1.bin", "data_batch_2.bin",
                                          "data_batch_3.bin", "data_batch_4.bin",
                                          "data_batch_5.bin", "test_batch.bin"};
    static const size_t counts[] = {4, 5, 4, 5, 5, 7};
    uint64_t hashes[COUNT_OF(batches)];
    programs_run *run = draw("", "--cifar -n 23 -t 7");
    programs_expect_success(run);
    programs_free(run);
    for (size_t i = 0; i < COUNT_OF(batches); i++) {
        size_t bytes;
        char *data = files_read(files_path(batches[i]), &bytes);
        assert_non_null(data);
        assert_int_equal(bytes, counts[i] * 3073);
        for (size_t r = 0; r < counts[i]; r++)
            assert_in_range(data[r * 3073], 0, 9);
        hashes[i] = fnv1a(data, bytes);
        free(data);
    }
    assert_int_equal(fnv1a(hashes, sizeof hashes), 0xee074a458b32df1dU);
}

static void the_trainer_reads_the_files(void **state)
{
    draw_well("-n 50 -t 10");
    static const size_t counts[] = {50, 50, 10, 10};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        idx_array array;
        const int dims = i % 2 == 0 ? 3 : 1;
        assert_int_equal(idx_read(files_path(names[i]), dims, &array), RING_OK);
        assert_int_equal(array.shape[0], counts[i]);
        assert_true(dims == 1 || (array.shape[1] == 28 && array.shape[2] == 28));
        for (size_t k = 0; dims == 1 && k < array.bytes; k++)
            assert_true(array.data[k] < 10);
        idx_free(&array);
    }
}

/* Killed while it writes: no file is half there, and an older set stays as it was. */
static void an_interrupted_run_leaves_no_set(void **state)
{
    programs_free(draw("ulimit -f 8;", "-n 50 -t 10"));
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_false(exists(names[i], ""));
    const uint64_t whole = draw_well("-n 50 -t 10");
    programs_free(draw("ulimit -f 8;", "-n 50 -t 10 -s 2"));
    assert_int_equal(hash_files(), whole);
    draw_well("-n 50 -t 10 -s 2");
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_false(exists(names[i], ".partial"));
}

static void what_cannot_be_written_is_told(void **state)
{
    programs_run *run = draw("trap '' XFSZ; ulimit -f 8;", "-n 50 -t 10");
    assert_int_equal(run->status, 1);
    assert_string_equal(run->output,
                        "ringdigits: cannot write train-images-idx3-ubyte: File too large");
    programs_free(run);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_false(exists(names[i], ".partial"));
    run = programs_shell("%s/ringdigits /nowhere/x 2>&1", programs.bin);
    assert_int_equal(run->status, 1);
    assert_string_equal(run->output,
                        "ringdigits: cannot write to /nowhere/x: No such file or directory");
    programs_free(run);
    run = programs_shell("%s/ringdigits -n 5 -t 5 %s 2>&1 > /dev/full", programs.bin,
                         files_path(""));
    assert_int_equal(run->status, 1);
    assert_string_equal(
        run->output,
        "ringdigits: standard output: not all of it could be written; is the disk full?");
    programs_free(run);
}

static void wrong_options_are_refused(void **state)
{
    static const char *const options[] = {"",
                                          "-n x /nowhere",
                                          "-n 0 /nowhere",
                                          "-t 0 /nowhere",
                                          "--cifar -n 4 /nowhere",
                                          "/nowhere /there",
                                          "--no /nowhere"};
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        programs_run *run = programs_shell("%s/ringdigits %s 2>&1", programs.bin, options[i]);
        assert_int_equal(run->status, 2);
        programs_free(run);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_set_up, files_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_seed_gives_the_same_bytes_everywhere),
        TEST(cifars_files_have_records_of_label_and_planes),
        TEST(the_trainer_reads_the_files),
        TEST(an_interrupted_run_leaves_no_set),
        TEST(what_cannot_be_written_is_told),
        TEST(wrong_options_are_refused),
    };
    if (argc != 4)
        return 2;
    programs = (programs_paths){.bin = argv[1], .examples = argv[2], .shared = argv[3]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
