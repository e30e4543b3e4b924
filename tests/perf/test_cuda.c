/* SPDX-License-Identifier: Apache-2.0
 * ringperf on GPUs, over the double of their driver: it measures and finds no wrong value, and says
 * why where it cannot. No time is judged. */
#include "shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

#define FAST " -b 1K -e 64K -f 64 -n 5 -T 60 "

enum { WRONG_OUT = 8, WRONG_IN = 12 }; /* columns #wrong */

static size_t rows_seen;

/* Sanitizers say of the emulation that they do not follow its fibers, ringrun which rank's does. */
static void expect_none_wrong(char **words, size_t count)
{
    if (strncmp(words[0], "==", 2) == 0 || words[0][0] == '[')
        return;
    assert_true(count > WRONG_IN);
    assert_string_equal(words[WRONG_OUT], "0");
    if (strcmp(words[WRONG_IN], "N/A") != 0)
        assert_string_equal(words[WRONG_IN], "0");
    rows_seen++;
}

static void expect_rows(size_t rows)
{
    rows_seen = 0;
    shell_rows(expect_none_wrong);
    assert_int_equal(rows_seen, rows);
}

/* Measures all right: @p rows sizes of the collective with the options. */
static void measures(const char *words, size_t rows)
{
    print_message("%s\n", words);
    const int status = shell("timeout -k 5 300 " RINGPERF_ON_GPU " %s --device cuda", words);
    if (status != 0)
        print_error("%s\n", shell_said);
    assert_int_equal(status, 0);
    expect_rows(rows);
    assert_int_equal(shell_count("Out of bounds values : 0 OK"), 1);
    assert_int_equal(shell_count("# Buffers: of a GPU (cuMemAlloc)"), 1);
}

/* ---- Measurements ---- */

static void calls(void **state)
{
    measures("all_reduce -g 1" FAST, 2);
    measures("all_reduce -g 2 -M 1" FAST, 2);
    assert_int_equal(shell_count("device  0 ["), 1);
    assert_int_equal(shell_count("device  1 ["), 1);
    assert_int_equal(shell_count("] Fake GPU"), 2);
    measures("all_reduce -g 4 -u 1 -d half -o max --hot" FAST, 2);
    assert_int_equal(shell_count("device  1 ["), 2);
    measures("all_reduce -t 2 -g 2 --prepared" FAST, 2);
    assert_int_equal(shell_count("# nThread 2 nGpus 2 "), 1);
}

static void stream(void **state)
{
    static const char *const words[] = {"all_reduce -g 1", "all_reduce -g 2", "all_reduce -g 4",
                                        "all_reduce -g 2 -m 3 -w 0 --prepared"};
    char line[200];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        snprintf(line, sizeof line, "%s --stream" FAST, words[i]);
        measures(line, 2);
        assert_int_equal(shell_count("# Calls: enqueued on a stream, with one wait for all"), 1);
    }
}

static void graph(void **state)
{
    static const char *const driven[] = {"all_reduce -g 1 --graph 3", "all_reduce -g 4 --graph 2"};
    static const char *const kept[] = {"all_reduce -g 2 -G 3 -c 2", "sendrecv -g 2 -G 2"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        char line[200];
        snprintf(line, sizeof line, "%s" FAST, kept[i]);
        measures(line, 2);
        assert_int_equal(shell_count("# Calls: captured into a graph, replayed"), 1);
    }
    for (size_t i = 0; i < sizeof driven / sizeof *driven; i++) {
        assert_int_not_equal(shell("timeout -k 5 300 " RINGPERF_ON_GPU " %s --device cuda" FAST,
                                   driven[i]),
                             0);
        assert_true(shell_count("a graph cannot keep such calls") > 0);
    }
}

/* By the host. */
static void driven(void **state)
{
    setenv("RING_DEVICE_PROGRAMS", "0", 1);
    measures("all_reduce -g 2 --stream" FAST, 2);
    measures("all_reduce -g 4 --stream" FAST, 2);
}

static void collectives(void **state)
{
    static const char *const names[] = {"reduce_scatter", "all_gather", "broadcast",
                                        "reduce",         "all_to_all", "all_gather_list",
                                        "scan",           "sendrecv",   "barrier"};
    char line[200];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t sizes = strcmp(names[i], "barrier") == 0 ? 1 : 2;
        snprintf(line, sizeof line, "%s -g 2" FAST, names[i]);
        measures(line, sizes);
        snprintf(line, sizeof line, "%s -g 2 --stream" FAST, names[i]);
        measures(line, sizes);
    }
}

static void processes(void **state)
{
    const int status = shell("timeout -k 5 300 " PROGRAMS "/ringrun -n 2 " RINGPERF_ON_GPU
                             " all_reduce --device cuda --stream -g 2" FAST);
    assert_int_equal(status, 0);
    expect_rows(2);
    assert_int_equal(shell_count("device  0 ["), 2);
    assert_int_equal(shell_count("device  1 ["), 2);
}

/* ---- Refusals ---- */

static void refuses(const char *words, const char *reason)
{
    print_message("%s\n", words);
    const int status = shell("timeout -k 5 300 env %s", words);
    assert_int_equal(status, 3);
    assert_int_equal(shell_count("ringperf: --device cuda: "), 1);
    assert_int_equal(shell_count("\n"), 1);
    if (strstr(shell_said, reason) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", shell_said, reason);
}

static void refusals(void **state)
{
    char folder[] = "/tmp/ringperf-test-XXXXXX", words[300];
    refuses("FAKE_CUDA=no_device " RINGPERF_ON_GPU " all_reduce --device cuda -g 2",
            "no CUDA-capable device is detected (error 100); see 'nvidia-smi'");
    refuses(RINGPERF_ON_GPU " all_reduce --device cuda:2 -g 2",
            "there is no GPU 2; GPUs are numbered 0 to 1, and 'ringinfo' lists them");
    assert_non_null(mkdtemp(folder));
    snprintf(words, sizeof words,
             "sh -c ': > %s/libcuda.so.1; LD_LIBRARY_PATH=%s " RINGPERF_ON_GPU
             " all_reduce --device cuda; status=$?; rm -r %s; exit $status'",
             folder, folder, folder);
    refuses(words, "libcuda.so.1: file too short; is NVIDIA's driver installed?");
}

/* A GPU that libring has no kernels for, and a libring without any. */
static void kernels(void **state)
{
    assert_int_equal(shell("FAKE_CUDA=no_binary timeout -k 5 300 " RINGPERF_ON_GPU
                           " all_reduce --device cuda"),
                     3);
    assert_int_equal(shell_count("warn: cannot use this thread's GPU: loading "
                                 "kernels (cuModuleLoadData): CUDA_ERROR_NO_BINARY_FOR_GPU"),
                     1);
    assert_int_equal(shell_count("libring does not use this GPU; its warning states the reason"),
                     1);
    assert_int_equal(shell_count("\n"), 2);
    if (!HAS_KERNELS)
        refuses(PROGRAMS "/ringperf all_reduce --device cuda",
                "built without GPU kernels; build it with nvcc 12.8 or newer, RING_CUDA=ON");
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls),    cmocka_unit_test(stream),      cmocka_unit_test(graph),
        cmocka_unit_test(driven),   cmocka_unit_test(collectives), cmocka_unit_test(processes),
        cmocka_unit_test(refusals), cmocka_unit_test(kernels),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
