/* SPDX-License-Identifier: Apache-2.0
 * The command line: nccl-tests' flags mean what they mean there, or are refused aloud. */
#include "perf_options.h"
#include "util/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

enum { PARSED = CHILD_RETURNED, ENDED = 0, WRONG = 2 };

static int argc;
static char *argv[64];

static void try_words(const void *arg)
{
    perf_options o;
    perf_options_parse(argc, argv, &o);
}

/* Parses words, "ringperf" before them; in a child first, which they may end. */
static int parse(perf_options *options, const char *line)
{
    static char copy[512];
    argv[0] = "ringperf";
    argc = 1;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word && argc < 63; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    const int status = child_run(try_words, NULL);
    if (status == PARSED)
        perf_options_parse(argc, argv, options);
    return status;
}

static void the_defaults_are_those_of_nccl_tests(void **state)
{
    perf_options o;
    assert_int_equal(parse(&o, "all_reduce"), PARSED);
    assert_string_equal(o.collective->name, "all_reduce");
    assert_int_equal(o.sizes.min, 32 << 20);
    assert_int_equal(o.sizes.max, 32 << 20);
    assert_int_equal(o.sizes.step, 1 << 20);
    assert_int_equal(o.threads, 1);
    assert_int_equal(o.iters, 20);
    assert_int_equal(o.warmup_iters, 1);
    assert_int_equal(o.agg_iters, 1);
    assert_int_equal(o.check, 1);
    assert_int_equal(o.dtype, RING_FLOAT32);
    assert_int_equal(o.op, RING_SUM);
    assert_int_equal(o.root, 0);
    assert_int_equal(o.memory, PERF_SHARED);
    assert_false(o.hot);
    assert_null(o.json);
}

static void short_and_long_flags_are_the_same(void **state)
{
    perf_options a, b;
    assert_int_equal(parse(&a, "reduce -t 2 -g 1 -b 8 -e 1M -f 2 -n 7 -m 3 -w 2 -N 2 -p 1 -c 4 -o "
                               "avg -d half -r 1 -z 1 -T 9 -a 2 -S 1 -M 1 -u 3 -I 1 -K 2"),
                     PARSED);
    assert_int_equal(parse(&b,
                           "reduce --nthreads 2 --ngpus 1 --minbytes 8 --maxbytes 1M --stepfactor "
                           "2 --iters 7 --agg_iters 3 --warmup_iters 2 --run_cycles 2 "
                           "--parallel_init 1 --check 4 --op=avg --datatype half"),
                     PARSED);
    assert_int_equal(a.sizes.max, 1 << 20);
    assert_int_equal(a.sizes.factor, 2);
    assert_int_equal(a.root, 1);
    assert_int_equal(a.unalign, 3);
    assert_int_equal(a.per_iter_skip, 2);
    assert_true(a.timeout == 9);
    assert_int_equal(a.threads, b.threads);
    assert_int_equal(a.agg_iters, b.agg_iters);
    assert_int_equal(a.op, b.op);
    assert_int_equal(a.dtype, RING_FLOAT16);
    assert_int_equal(b.dtype, RING_FLOAT16);
}

static void types_have_the_names_of_nccl_tests_and_ours(void **state)
{
    static const struct {
        const char *name;
        int dtype;
    } cases[] = {{"float", RING_FLOAT32},      {"float32", RING_FLOAT32},
                 {"half", RING_FLOAT16},       {"float16", RING_FLOAT16},
                 {"double", RING_FLOAT64},     {"float64", RING_FLOAT64},
                 {"bfloat16", RING_BFLOAT16},  {"int8", RING_INT8},
                 {"uint8", RING_UINT8},        {"int32", RING_INT32},
                 {"uint32", RING_UINT32},      {"int64", RING_INT64},
                 {"uint64", RING_UINT64},      {"char", RING_INT8},
                 {"int", RING_INT32},          {"all", PERF_ALL},
                 {"f8e4m3", RING_FLOAT8_E4M3}, {"float8_e4m3", RING_FLOAT8_E4M3},
                 {"f8e5m2", RING_FLOAT8_E5M2}, {"float8_e5m2", RING_FLOAT8_E5M2},
                 {"int16", RING_INT16},        {"short", RING_INT16},
                 {"uint16", RING_UINT16},      {"u16", RING_UINT16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int dtype = 77;
        assert_true(perf_dtype_parse(cases[i].name, &dtype));
        assert_int_equal(dtype, cases[i].dtype);
    }
}

static void every_collective_takes_an_op(void **state)
{
    perf_options o;
    char line[128];
    for (size_t i = 0; perf_collective_at(i); i++) {
        snprintf(line, sizeof line, "%s -o max -d int32 -b 8 -e 8", perf_collective_at(i)->name);
        assert_int_equal(parse(&o, line), PARSED);
        assert_int_equal(o.op, RING_MAX);
    }
    assert_int_equal(parse(&o, "all_reduce -o mulsum"), PARSED);
    assert_int_equal(o.op, RING_PREMUL_SUM);
    assert_int_equal(parse(&o, "all_reduce -o premul_sum"), PARSED);
    assert_int_equal(o.op, RING_PREMUL_SUM);
}

static void the_names_of_nccl_and_its_tests_are_known(void **state)
{
    static const char *const names[][2] = {
        {"all_reduce_perf", "all_reduce"},
        {"all_gather_perf", "all_gather"},
        {"alltoall_perf", "all_to_all"},
        {"alltoallv_perf", "all_to_all_v"},
        {"broadcast_perf", "broadcast"},
        {"gather_perf", "gather"},
        {"reduce_perf", "reduce"},
        {"reduce_scatter_perf", "reduce_scatter"},
        {"scatter_perf", "scatter"},
        {"sendrecv_perf", "sendrecv"},
        {"allreduce", "all_reduce"},
        {"AllGather", "all_gather"},
        {"reducescatter", "reduce_scatter"},
        {"alltoall", "all_to_all"},
        {"all-to-all", "all_to_all"},
        {"allgatherv", "all_gather_v"},
        {"bcast", "broadcast"},
        {"SendRecv", "sendrecv"},
        {"ncclAllReduce", "all_reduce"},
        {"ncclReduceScatter", "reduce_scatter"},
        {"ncclBcast", "broadcast"},
        {"ncclAlltoAll", "all_to_all"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        perf_options o;
        assert_int_equal(parse(&o, names[i][0]), PARSED);
        assert_string_equal(o.collective->name, names[i][1]);
    }
    assert_null(perf_collective_find(""));
    assert_null(perf_collective_find("_perf"));
    assert_null(perf_collective_find("nccl"));
    assert_null(perf_collective_find("all_reduce_"
                                     "................................................_perf"));
}

static void what_cannot_be_done_is_refused_with_the_word(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"all_reduce -g 0 --device cuda", "-g 0: "},
        {"all_reduce -g 2", "--ngpus requires --device cuda"},
        {"all_reduce -G 1", "--graph requires --device cuda"},
        {"all_reduce --graph 1 --device cpu", "--graph requires"},
        {"all_reduce --stream", "--stream requires"},
        {"all_reduce --device gpu", "--device gpu: expected cpu, cuda or cuda:N"},
        {"all_reduce --device cuda:", "--device cuda:: expected"},
        {"all_reduce --device cuda:1x", "--device cuda:1x: expected"},
        {"all_reduce --device cuda --buffer plain", "are for memory of the host"},
        {"all_reduce --device cuda -R 2", "are for memory of the host"},
        {"all_reduce --device cuda -t 64 -g 17", "a process can have at most 1024 ranks"},
        {"all_reduce --device cuda --stream -I 1", "--stream does not time single calls"},
        {"all_reduce --device cuda --stream -z 1", "excludes --blocking 1"},
        {"all_reduce --device cuda --graph 2 -z 3", "--graph enqueues calls without"},
        {"all_reduce --device cuda --graph 2 --prepared", "excludes --tagged and --prepared"},
        {"sendrecv --device cuda --graph 2 --tagged", "excludes --tagged and --prepared"},
        {"all_reduce -y 1", "-y 1: "},
        {"all_reduce -C 1", "-C 1: "},
        {"all_reduce -R 1", "-R 1: "},
        {"all_reduce -x 0", "-x 0: "},
        {"all_reduce -D 1", "-D 1: "},
        {"all_reduce -V 16", "-V 16: "},
        {"all_reduce -o mean", "-o mean: "},
        {"all_reduce -d f8e3m4", "-d f8e3m4: "},
        {"all_reduce -b 1Q", "-b 1Q: "},
        {"all_reduce -n 0", "-n 0: "},
        {"all_reduce -n many", "-n many: "},
        {"all_reduce -r two", "-r two: "},
        {"all_reduce --buffer gpu", "--buffer gpu: expected shared or plain"},
        {"all_reduce --bogus", "--bogus"},
        {"all_reduce -Q", "-Q"},
        {"all_reduce -b", "-b needs a value"},
        {"all_reduce extra", "extra"},
        {"all_reduce -b 8M -e 4M", "--minbytes"},
        {"all_reduce -i 0", "--stepbytes"},
        {"all_reduce -K 1", "--per_iter_skip"},
        {"all_reduce -I 1 -n 5 -K 5", "--per_iter_skip 5"},
        {"sort", "sort"},
        {"-b 8", "collective"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        perf_options o;
        assert_int_equal(parse(&o, cases[i].line), WRONG);
        assert_non_null(strstr(child_said, cases[i].says));
        assert_string_equal(strchr(child_said, '\n'), "\n");
    }
}

static void off_switches_of_gpu_features_are_accepted(void **state)
{
    perf_options o;
    assert_int_equal(parse(&o, "all_reduce -y 0 -G 0 -C 0 -D 0 -g 1"), PARSED);
}

static void buffers_may_be_a_gpus(void **state)
{
    perf_options o;
    assert_int_equal(parse(&o, "all_reduce --device cpu --buffer plain"), PARSED);
    assert_int_equal(o.gpu, PERF_NO_GPU);
    assert_int_equal(parse(&o, "all_reduce --device cuda -t 2 -g 4"), PARSED);
    assert_int_equal(o.gpu, PERF_GPUS_IN_TURN);
    assert_int_equal(o.memory, PERF_GPU);
    assert_int_equal(o.ngpus, 4);
    assert_false(o.stream || o.hot);
    assert_int_equal(parse(&o, "all_reduce --device cuda:3 --stream"), PARSED);
    assert_int_equal(o.gpu, 3);
    assert_true(o.stream && o.hot);
    assert_int_equal(parse(&o, "all_reduce --device cuda -G 5"), PARSED);
    assert_int_equal(o.graph, 5);
    assert_true(o.stream && o.hot);
}

static void registration_chooses_the_buffers(void **state)
{
    perf_options o;
    assert_int_equal(parse(&o, "all_reduce -R 0"), PARSED);
    assert_int_equal(o.memory, PERF_PLAIN);
    assert_int_equal(parse(&o, "all_reduce -R 2"), PARSED);
    assert_int_equal(o.memory, PERF_SHARED);
    assert_int_equal(parse(&o, "all_reduce --buffer plain"), PARSED);
    assert_int_equal(o.memory, PERF_PLAIN);
}

static void all_stands_for_each_type_op_and_root(void **state)
{
    perf_options o;
    assert_int_equal(parse(&o, "reduce -d all -o all -r all"), PARSED);
    assert_int_equal(o.dtype, PERF_ALL);
    assert_int_equal(o.op, PERF_ALL);
    assert_int_equal(o.root, PERF_ALL);
    assert_int_equal(parse(&o, "reduce -r -1"), PARSED);
    assert_int_equal(o.root, PERF_ALL);
}

static void help_and_version_win(void **state)
{
    perf_options o;
    assert_int_equal(parse(&o, "--help"), ENDED);
    assert_int_equal(parse(&o, "all_reduce -h"), ENDED);
    assert_int_equal(parse(&o, "--version"), ENDED);
}

static void the_least_bandwidth_comes_from_the_environment(void **state)
{
    perf_options o;
    assert_int_equal(parse(&o, "all_reduce"), PARSED);
    assert_true(o.min_bandwidth < 0);
    setenv("NCCL_TESTS_MIN_BW", "2", 1);
    assert_int_equal(parse(&o, "all_reduce"), PARSED);
    assert_true(o.min_bandwidth == 2);
    setenv("RINGPERF_MIN_BW", "3.5", 1);
    assert_int_equal(parse(&o, "all_reduce"), PARSED);
    assert_true(o.min_bandwidth == 3.5);
    setenv("RINGPERF_MIN_BW", "fast", 1);
    assert_int_equal(parse(&o, "all_reduce"), WRONG);
    assert_non_null(strstr(child_said, "RINGPERF_MIN_BW=fast"));
    unsetenv("RINGPERF_MIN_BW");
    setenv("NCCL_TESTS_MIN_BW", "fast", 1); /* another program's: noted only */
    assert_int_equal(parse(&o, "all_reduce"), PARSED);
    assert_true(o.min_bandwidth < 0);
    unsetenv("NCCL_TESTS_MIN_BW");
}

static void the_help_lists_every_flag_of_nccl_tests(void **state)
{
    perf_options o;
    assert_int_equal(parse(&o, "--help"), ENDED);
    for (const char *letter = "tgbeifnmwNpcodrzyTGCSJaRxDVMuIKh"; *letter; letter++) {
        const char flag[] = {'\n', ' ', ' ', '-', *letter, ',', '\0'};
        assert_non_null(strstr(child_said, flag));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_those_of_nccl_tests),
        cmocka_unit_test(short_and_long_flags_are_the_same),
        cmocka_unit_test(types_have_the_names_of_nccl_tests_and_ours),
        cmocka_unit_test(every_collective_takes_an_op),
        cmocka_unit_test(the_names_of_nccl_and_its_tests_are_known),
        cmocka_unit_test(what_cannot_be_done_is_refused_with_the_word),
        cmocka_unit_test(off_switches_of_gpu_features_are_accepted),
        cmocka_unit_test(buffers_may_be_a_gpus),
        cmocka_unit_test(registration_chooses_the_buffers),
        cmocka_unit_test(all_stands_for_each_type_op_and_root),
        cmocka_unit_test(help_and_version_win),
        cmocka_unit_test(the_least_bandwidth_comes_from_the_environment),
        cmocka_unit_test(the_help_lists_every_flag_of_nccl_tests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
