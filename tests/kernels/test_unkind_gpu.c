/* SPDX-License-Identifier: Apache-2.0
 * Tests the unkind behaviours of the double of NVIDIA's driver: late copies, hardware queues,
 * limits of what may be pending, calls that block, and the deadline of such calls. Each test has a
 * process of its own, and so sets the double's environment. Usage: test_kernels.unkind_gpu TEST */
#include "fake_cuda_table.h"
#include "sample_kernels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit_test.h"

#include "one_test.h"

enum { LARGE_BYTES = 128 << 10, MOST_KERNELS = 1020, MOST_PAIRS = 510, MOST_REPLAYS = 55 };

static cuda_table cu;
static fake_cuda_table fake;
static CUcontext context;
static CUfunction adding;
static CUmodule module;
static CUstream streams[2];
static CUdeviceptr gate, memory; /* a word that stops streams; 256 KiB */

#define OK(call) assert_int_equal(call, CUDA_SUCCESS)

/* ---- Ground ------------------------------------------------------------------------------- */

static void set_word(CUdeviceptr at, uint32_t value)
{
    fake.write((void *)(uintptr_t)at, &value, sizeof value);
}

static uint32_t word(CUdeviceptr at)
{
    uint32_t value;
    fake.read(&value, (const void *)(uintptr_t)at, sizeof value);
    return value;
}

/* @param name, value  of the environment. */
static void open_gpu(const char *name, const char *value)
{
    setenv(name, value, 1);
    alarm(90); /* no test waits longer */
    OK(cu.init(0));
    OK(cu.primary_retain(&context, 0));
    OK(cu.set_current(context));
    OK(cu.module_load(&module, "RINGEMU"));
    OK(cu.module_get_function(&adding, module, "sample_add"));
    for (int i = 0; i < 2; i++)
        OK(cu.stream_create(&streams[i], CU_STREAM_NON_BLOCKING, 0));
    OK(cu.mem_alloc(&gate, 64));
    OK(cu.mem_alloc(&memory, 2 * LARGE_BYTES));
    OK(cu.set_words_async(gate, 0, 16, streams[0]));
    OK(cu.set_words_async(memory, 0, LARGE_BYTES / 2, streams[0]));
    OK(cu.stream_synchronize(streams[0]));
}

static void close_gpu(void)
{
    fake_cuda_counts left;
    OK(cu.context_synchronize());
    OK(cu.mem_free(gate));
    OK(cu.mem_free(memory));
    for (int i = 0; i < 2; i++)
        OK(cu.stream_destroy(streams[i]));
    OK(cu.module_unload(module));
    OK(cu.primary_release(0));
    fake.counters(&left);
    assert_int_equal(left.allocations + left.pinned + left.streams + left.graphs, 0);
}

static void stop(CUstream stream)
{
    set_word(gate, 0);
    OK(cu.stream_wait_value(stream, gate, 1, CU_STREAM_WAIT_VALUE_EQ));
}

static void let_go(void)
{
    set_word(gate, 1);
}

static CUresult add(CUstream stream, CUdeviceptr at, uint32_t value)
{
    const sample_add args = {.words = (void *)(uintptr_t)at, .count = 1, .value = value};
    void *parameters[] = {(void *)(uintptr_t)&args};
    return cu.launch(adding, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

/* A call that another thread makes. */
typedef struct attempt {
    CUresult (*call)(void);
    CUresult result;
    _Atomic bool ended;
    pthread_t thread;
} attempt;

static void *make_call(void *arg)
{
    attempt *a = arg;
    a->result = cu.set_current(context);
    if (a->result == CUDA_SUCCESS)
        a->result = a->call();
    atomic_store(&a->ended, true);
    return NULL;
}

static void attempt_start(attempt *a, CUresult (*call)(void))
{
    a->call = call;
    atomic_init(&a->ended, false);
    assert_int_equal(pthread_create(&a->thread, NULL, make_call, a), 0);
}

static bool attempt_blocks(const attempt *a)
{
    usleep(100 * 1000);
    return !atomic_load(&a->ended);
}

static void attempt_end(attempt *a)
{
    assert_int_equal(pthread_join(a->thread, NULL), 0);
    OK(a->result);
}

/* ---- Late copies -------------------------------------------------------------------------- */

static void copies_end_after_their_calls(void **state)
{
    uint32_t host[16];
    open_gpu("FAKE_CUDA_LATE", "100");
    memset(host, 1, sizeof host);
    stop(NULL);
    stop(streams[0]);
    OK(cu.copy(memory, (uintptr_t)host, sizeof host));
    OK(cu.copy_to_device_async(memory + 1024, host, sizeof host, streams[0]));
    memset(host, 2, sizeof host); /* was copied */
    OK(cu.copy(memory + 64, memory, 64));
    OK(cu.set_words(memory + 128, 5, 1));
    OK(cu.set_bytes(memory + 132, 6, 4));
    OK(add(streams[1], memory + 64, 7)); /* overtakes the copy */
    OK(cu.stream_synchronize(streams[1]));
    assert_int_equal(word(memory), 0);
    assert_int_equal(word(memory + 64), 7);
    assert_int_equal(word(memory + 128), 0);
    assert_int_equal(word(memory + 1024), 0);
    let_go();
    OK(cu.stream_synchronize(NULL));
    OK(cu.stream_synchronize(streams[0]));
    assert_int_equal(word(memory), 0x01010101);
    assert_int_equal(word(memory + 64), 0x01010101);
    assert_int_equal(word(memory + 128), 5);
    assert_int_equal(word(memory + 132), 0x06060606);
    assert_int_equal(word(memory + 1024), 0x01010101);
    close_gpu();
}

static void late_copies_begin_late(void **state)
{
    uint32_t host = 3;
    open_gpu("FAKE_CUDA_LATE", "500000");
    OK(cu.copy(memory, (uintptr_t)&host, sizeof host));
    assert_int_equal(word(memory), 0);
    OK(cu.copy((uintptr_t)&host, memory, sizeof host)); /* to the host: is waited for */
    assert_int_equal(host, 3);
    assert_int_equal(word(memory), 3);
    close_gpu();
}

static uint32_t large[LARGE_BYTES / 4];
static void *pinned;

static CUresult copy_large(void)
{
    return cu.copy(memory, (uintptr_t)large, sizeof large);
}

static CUresult copy_few(void)
{
    return cu.copy(memory, (uintptr_t)large, 64);
}

static CUresult copy_pinned(void)
{
    return cu.copy(memory, (uintptr_t)pinned, 64);
}

static void expect_wait(CUresult (*call)(void))
{
    attempt a;
    stop(NULL);
    attempt_start(&a, call);
    assert_true(attempt_blocks(&a));
    let_go();
    attempt_end(&a);
}

static void some_copies_wait_for_their_stream(void **state)
{
    const unsigned yes = 1;
    open_gpu("FAKE_CUDA_LATE", "0");
    OK(cu.host_alloc(&pinned, 64, 0));
    memset(pinned, 4, 64);
    expect_wait(copy_large);
    expect_wait(copy_pinned);
    assert_int_equal(word(memory), 0x04040404);
    OK(cu.pointer_set_attribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
    expect_wait(copy_few);
    assert_int_equal(word(memory), 0);
    OK(cu.host_free(pinned));
    close_gpu();
}

/* ---- Hardware queues ---------------------------------------------------------------------- */

static void set_flag(void *data)
{
    atomic_store((_Atomic bool *)data, true);
}

/* The first stream has a copy after a wait. The copy of the second stream is held up, its host
 * function passes, and its kernel and its word pass if @p kernels_pass. */
static void expect_pass(bool kernels_pass)
{
    _Atomic bool called = false;
    stop(streams[0]);
    OK(cu.copy_async(memory + 4, memory, 4, streams[0]));
    OK(cu.launch_host(streams[1], set_flag, &called));
    OK(add(streams[1], memory + 8, 5));
    OK(cu.stream_write_value(streams[1], memory + 12, 6, 0));
    OK(cu.set_words_async(memory + 16, 7, 1, streams[1]));
    for (int i = 0;
         i < 6000 && !(atomic_load(&called) && (!kernels_pass || word(memory + 12) == 6)); i++)
        usleep(10000);
    usleep(100 * 1000);
    assert_true(atomic_load(&called));
    assert_int_equal(word(memory + 8), kernels_pass ? 5 : 0);
    assert_int_equal(word(memory + 12), kernels_pass ? 6 : 0);
    assert_int_equal(word(memory + 16), 0);
    assert_int_equal(cu.stream_query(streams[1]), CUDA_ERROR_NOT_READY);
    let_go();
    OK(cu.stream_synchronize(streams[1]));
    assert_int_equal(word(memory + 8), 5);
    assert_int_equal(word(memory + 12), 6);
    assert_int_equal(word(memory + 16), 7);
}

static void copies_of_a_queue_hold_up_later_ones(void **state)
{
    open_gpu("FAKE_CUDA_QUEUES", "1");
    expect_pass(true);
    close_gpu();
}

static void a_variable_of_the_driver_sets_queues(void **state)
{
    unsetenv("FAKE_CUDA_QUEUES");
    open_gpu("CUDA_DEVICE_MAX_CONNECTIONS", "1");
    expect_pass(true);
    close_gpu();
}

static void strict_queues_hold_up_kernels(void **state)
{
    open_gpu("FAKE_CUDA_QUEUES", "1,strict");
    expect_pass(false);
    close_gpu();
}

/* The streams are dealt to two queues. */
static void copies_of_other_queues_pass(void **state)
{
    open_gpu("FAKE_CUDA_QUEUES", "2");
    stop(streams[0]);
    OK(cu.copy_async(memory + 4, memory, 4, streams[0]));
    OK(cu.set_words_async(memory + 16, 7, 1, streams[1]));
    OK(cu.stream_synchronize(streams[1]));
    assert_int_equal(word(memory + 16), 7);
    let_go();
    close_gpu();
}

/* ---- Limits ------------------------------------------------------------------------------- */

static CUgraphExec graph;

static CUresult add_there(void)
{
    return add(streams[0], memory, 1);
}

static CUresult add_elsewhere(void)
{
    return add(streams[1], memory + 4, 1);
}

static CUresult write_there(void)
{
    return cu.stream_write_value(streams[0], memory + 8, 1, 0);
}

static CUresult replay(void)
{
    return cu.graph_launch(graph, streams[0]);
}

/* @param kernels  besides the wait that stops the stream. */
static void fill_stream(int kernels, int pairs)
{
    stop(streams[0]);
    for (int i = 0; i < kernels; i++)
        OK(add_there());
    for (int i = 0; i < 2 * pairs; i++)
        OK(write_there());
}

/* The call blocks, and calls for other streams do not. */
static void expect_limit(CUresult (*call)(void))
{
    attempt beyond, elsewhere;
    attempt_start(&beyond, call);
    assert_true(attempt_blocks(&beyond));
    attempt_start(&elsewhere, add_elsewhere);
    attempt_end(&elsewhere);
    let_go();
    attempt_end(&beyond);
    OK(cu.stream_synchronize(streams[0]));
}

static void a_stopped_stream_accepts_some_ops(void **state)
{
    open_gpu("FAKE_CUDA_LIMITS", "1");
    fill_stream(MOST_KERNELS, 0);
    expect_limit(add_there);
    assert_int_equal(word(memory), MOST_KERNELS + 1);
    fill_stream(0, MOST_PAIRS);
    expect_limit(write_there);
    close_gpu();
}

static void do_nothing(void *unused)
{
}

static void capture(int folds)
{
    CUgraph captured;
    OK(cu.begin_capture(streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
    for (int i = 0; i < folds; i++) {
        OK(cu.stream_write_value(streams[0], memory + 8, 1, 0));
        OK(cu.launch_host(streams[0], do_nothing, NULL));
        OK(cu.stream_wait_value(streams[0], memory + 8, 1, CU_STREAM_WAIT_VALUE_EQ));
    }
    OK(cu.end_capture(streams[0], &captured));
    OK(cu.graph_instantiate(&graph, captured, 0));
    OK(cu.graph_destroy(captured));
}

/* A replay too many blocks, and with it all calls that enqueue. */
static void expect_lock(int folds, int replays)
{
    attempt beyond, elsewhere;
    capture(folds);
    stop(streams[0]);
    for (int i = 0; i < replays; i++)
        OK(replay());
    attempt_start(&beyond, replay);
    assert_true(attempt_blocks(&beyond));
    attempt_start(&elsewhere, add_elsewhere);
    assert_true(attempt_blocks(&elsewhere));
    let_go();
    attempt_end(&beyond);
    attempt_end(&elsewhere);
    OK(cu.stream_synchronize(streams[0]));
    OK(cu.graph_exec_destroy(graph));
}

static void replays_block_with_the_lock_of_the_driver(void **state)
{
    open_gpu("FAKE_CUDA_LIMITS", "1");
    expect_lock(1, MOST_REPLAYS);
    expect_lock(20, 2);
    close_gpu();
}

static void without_limits_streams_accept_more(void **state)
{
    open_gpu("FAKE_CUDA_LIMITS", "0");
    capture(1);
    fill_stream(MOST_KERNELS + 100, 0);
    for (int i = 0; i < 2 * MOST_REPLAYS; i++)
        OK(replay());
    let_go();
    OK(cu.stream_synchronize(streams[0]));
    OK(cu.graph_exec_destroy(graph));
    close_gpu();
}

/* ---- Calls that wait for all streams ------------------------------------------------------ */

static CUresult allocate(void)
{
    CUdeviceptr other;
    const CUresult result = cu.mem_alloc(&other, 64);
    return result == CUDA_SUCCESS ? cu.mem_free_async(other, streams[1]) : result;
}

static CUresult free_some(void)
{
    return cu.mem_free(0) == CUDA_SUCCESS ? cu.host_free(pinned) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult synchronize(void)
{
    return cu.context_synchronize();
}

static void expect_drains(bool lock)
{
    CUresult (*const calls[])(void) = {allocate, free_some, synchronize};
    OK(cu.host_alloc(&pinned, 64, 0));
    for (int i = 0; i < 3; i++) {
        attempt waits, elsewhere;
        stop(streams[0]);
        attempt_start(&waits, calls[i]);
        assert_true(attempt_blocks(&waits));
        attempt_start(&elsewhere, add_elsewhere);
        if (lock)
            assert_true(attempt_blocks(&elsewhere));
        else
            attempt_end(&elsewhere);
        let_go();
        attempt_end(&waits);
        if (lock)
            attempt_end(&elsewhere);
    }
}

static void some_calls_wait_for_all_streams(void **state)
{
    open_gpu("FAKE_CUDA_ALLOC_DRAINS", "1");
    expect_drains(false);
    close_gpu();
}

static void some_calls_hold_the_lock_of_the_driver(void **state)
{
    setenv("FAKE_CUDA_ALLOC_DRAINS", "1", 1);
    open_gpu("FAKE_CUDA_FREE_LOCKS", "1");
    expect_drains(true);
    close_gpu();
}

/* ---- Synchronous launches ----------------------------------------------------------------- */

static void launches_wait_for_their_kernels(void **state)
{
    attempt waits;
    open_gpu("FAKE_CUDA_SYNC", "1");
    stop(streams[0]);
    attempt_start(&waits, add_there);
    assert_true(attempt_blocks(&waits));
    let_go();
    attempt_end(&waits);
    assert_int_equal(word(memory), 1);
    OK(add_there());
    assert_int_equal(word(memory), 2);
    close_gpu();
}

/* ---- Deadlines ---------------------------------------------------------------------------- */

static void wait_at_stop(void)
{
    stop(streams[0]);
    OK(cu.copy_async(memory + 4, memory, 4, streams[0]));
    OK(cu.set_words_async(memory, 1, 1, streams[1]));
    (void)cu.stream_synchronize(streams[1]);
}

static void wait_at_limit(void)
{
    fill_stream(MOST_KERNELS, 0);
    (void)add_there();
}

static void wait_for_lock(void)
{
    attempt beyond;
    capture(1);
    stop(streams[0]);
    for (int i = 0; i < MOST_REPLAYS; i++)
        OK(replay());
    attempt_start(&beyond, replay);
    (void)attempt_blocks(&beyond);
    (void)add_elsewhere();
}

/* A child's call comes to its deadline. Its messages name it. */
static void expect_message(void (*body)(void), const char *const *texts)
{
    char said[4096] = "";
    size_t length = 0;
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        setenv("FAKE_CUDA_DEADLINE", "1", 1);
        setenv("FAKE_CUDA_LIMITS", "1", 1);
        open_gpu("FAKE_CUDA_QUEUES", "1");
        body();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got = 1; got > 0 && length<sizeof said - 1; length += got> 0 ? (size_t)got : 0)
        got = read(ends[0], said + length, sizeof said - 1 - length);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    for (; *texts != NULL; texts++)
        if (strstr(said, *texts) == NULL)
            fail_msg("no \"%s\" in: %s", *texts, said);
}

static void deadlines_name_the_call(void **state)
{
    static const char *const at_stop[] = {
        "cuStreamSynchronize() has waited for 1 s (FAKE_CUDA_DEADLINE) for stream 3 until its ops",
        "stream 2, hardware queue 0: 2 ops, the first is a wait for a word",
        "stream 3, hardware queue 0: 1 op, the first is a memset, held up by a copy of stream 2",
        NULL};
    static const char *const at_limit[] = {
        "cuLaunchKernel() has waited for 1 s (FAKE_CUDA_DEADLINE) for stream 2 until fewer", NULL};
    static const char *const at_lock[] = {"cuGraphLaunch() for stream 2 holds the driver's lock",
                                          NULL};
    expect_message(wait_at_stop, at_stop);
    expect_message(wait_at_limit, at_limit);
    expect_message(wait_for_lock, at_lock);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {TEST(copies_end_after_their_calls),
                                              TEST(late_copies_begin_late),
                                              TEST(some_copies_wait_for_their_stream),
                                              TEST(copies_of_a_queue_hold_up_later_ones),
                                              TEST(a_variable_of_the_driver_sets_queues),
                                              TEST(strict_queues_hold_up_kernels),
                                              TEST(copies_of_other_queues_pass),
                                              TEST(a_stopped_stream_accepts_some_ops),
                                              TEST(replays_block_with_the_lock_of_the_driver),
                                              TEST(without_limits_streams_accept_more),
                                              TEST(some_calls_wait_for_all_streams),
                                              TEST(some_calls_hold_the_lock_of_the_driver),
                                              TEST(launches_wait_for_their_kernels),
                                              TEST(deadlines_name_the_call)};
    cu = cuda_functions();
    fake = fake_cuda_functions();
    return run_one(tests, sizeof tests / sizeof *tests, argc, argv);
}
