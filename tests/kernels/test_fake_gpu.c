/* SPDX-License-Identifier: Apache-2.0
 * The double of NVIDIA's driver itself: what tests of GPU code rely on. Each test has a process of
 * its own, and so a GPU of its own. Usage: test_kernels.fake_gpu TEST */
#include "fake_cuda_table.h"
#include "kernel_args.h"
#include "sample_kernels.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit_test.h"

#include "one_test.h"

enum { PAGE = 4096, BLOCKS = 8, GRANULE = 2 << 20 };

static cuda_table cu;
static fake_cuda_table fake;
static CUcontext context;
static CUmodule module;
static CUstream streams[2];

#define OK(call) assert_int_equal(call, CUDA_SUCCESS)

/* ---- Ground ---- */

static void open_gpu(void)
{
    OK(cu.init(0));
    OK(cu.primary_retain(&context, 0));
    OK(cu.set_current(context));
    OK(cu.module_load(&module, "RINGEMU"));
    for (int i = 0; i < 2; i++)
        OK(cu.stream_create(&streams[i], CU_STREAM_NON_BLOCKING, 0));
}

static fake_cuda_counts counts(void)
{
    fake_cuda_counts now;
    fake.counters(&now);
    return now;
}

static void close_gpu(void)
{
    for (int i = 0; i < 2; i++)
        OK(cu.stream_destroy(streams[i]));
    OK(cu.module_unload(module));
    OK(cu.context_synchronize());
    OK(cu.primary_release(0));
    const fake_cuda_counts left = counts();
    assert_int_equal(left.allocations + left.pinned + left.physical, 0);
    assert_int_equal(left.streams + left.events + left.modules, 0);
    assert_int_equal(left.graphs + left.user_objects + left.contexts, 0);
}

static CUfunction function(const char *name)
{
    CUfunction found;
    OK(cu.module_get_function(&found, module, name));
    return found;
}

static CUresult launch(CUstream stream, const char *name, unsigned grid, const void *args)
{
    void *parameters[] = {(void *)(uintptr_t)args};
    return cu.launch(function(name), grid, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static CUresult add(CUstream stream, CUdeviceptr words, uint32_t count, uint32_t value)
{
    const sample_add args = {.words = (void *)(uintptr_t)words, .count = count, .value = value};
    return launch(stream, "sample_add", 1, &args);
}

static CUdeviceptr memory_new(size_t bytes)
{
    CUdeviceptr memory;
    OK(cu.mem_alloc(&memory, bytes));
    OK(cu.set_bytes_async(memory, 0, bytes, streams[0]));
    OK(cu.stream_synchronize(streams[0]));
    return memory;
}

static uint32_t word(CUdeviceptr memory)
{
    uint32_t value;
    fake.read(&value, (const void *)(uintptr_t)memory, sizeof value);
    return value;
}

static void set_word(CUdeviceptr memory, uint32_t value)
{
    fake.write((void *)(uintptr_t)memory, &value, sizeof value);
}

/* Runs @p body in a child. @return how the child ended. */
static int status_of(void (*body)(void))
{
    int status;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* ---- Processes ---- */

static CUdeviceptr forbidden;

static void load_it(void)
{
    (void)*(volatile const char *)(uintptr_t)forbidden;
}

static void store_it(void)
{
    *(volatile char *)(uintptr_t)forbidden = 1;
}

static void the_host_cannot_touch_memory_of_the_device(void **state)
{
    open_gpu();
    forbidden = memory_new(64);
    const int load = status_of(load_it), store = status_of(store_it);
    assert_true(WIFSIGNALED(load) && WTERMSIG(load) == SIGSEGV);
    assert_true(WIFSIGNALED(store) && WTERMSIG(store) == SIGSEGV);
    OK(cu.mem_free(forbidden));
    close_gpu();
}

static void call_in_child(void)
{
    int count;
    _exit(cu.init(0) == CUDA_ERROR_NOT_INITIALIZED &&
                  cu.device_count(&count) == CUDA_ERROR_NOT_INITIALIZED
              ? 3
              : 4);
}

static void a_child_has_no_gpu(void **state)
{
    int count;
    assert_int_equal(cu.device_count(&count), CUDA_ERROR_NOT_INITIALIZED);
    open_gpu();
    assert_int_equal(WEXITSTATUS(status_of(call_in_child)), 3);
    close_gpu();
}

/* Its GPU process has the same stderr, a pipe that is at its end when both are gone. */
static void the_gpu_process_ends_with_its_host(void **state)
{
    int pipe_ends[2];
    char rest[16];
    assert_int_equal(pipe(pipe_ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipe_ends[1], STDERR_FILENO);
        close(pipe_ends[1]);
        _exit(cu.init(0));
    }
    close(pipe_ends[1]);
    alarm(60);
    assert_int_equal(read(pipe_ends[0], rest, sizeof rest), 0);
    alarm(0);
    close(pipe_ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(waitpid(-1, NULL, 0), -1); /* it was no child of this process */
}

static void *open_it(void *unused)
{
    return cu.init(0) == CUDA_SUCCESS ? &cu : NULL;
}

/* The GPU process outlives the thread that made it. */
static void any_thread_starts_the_gpu(void **state)
{
    pthread_t thread;
    void *opened = NULL;
    assert_int_equal(pthread_create(&thread, NULL, open_it, NULL), 0);
    assert_int_equal(pthread_join(thread, &opened), 0);
    assert_non_null(opened);
    open_gpu();
    const CUdeviceptr memory = memory_new(4);
    OK(add(streams[0], memory, 1, 1));
    OK(cu.stream_synchronize(streams[0]));
    OK(cu.mem_free(memory));
    close_gpu();
}

/* ---- Streams ---- */

static void kernels_write_memory(void **state)
{
    enum { COUNT = 1000, GRID = 20 };
    uint32_t got[COUNT];
    open_gpu();
    const CUdeviceptr memory = memory_new(sizeof got);
    sample_add args = {.words = (void *)(uintptr_t)memory, .count = COUNT, .value = 3};
    OK(launch(streams[0], "sample_add", GRID, &args));
    args.words = NULL; /* the launch has its own */
    OK(cu.copy_to_host_async(got, memory, sizeof got, streams[0]));
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(got[i], 3 * GRID);
    memset(got, 1, sizeof got);
    OK(cu.copy_to_device_async(memory, got, sizeof got, streams[0]));
    OK(cu.stream_synchronize(streams[0]));
    assert_int_equal(word(memory + 4 * (COUNT - 1)), 0x01010101);
    assert_int_equal(counts().launches_done, 1);
    OK(cu.mem_free(memory));
    close_gpu();
}

/* A copy takes what the kernel before it made, and no more, however late either is. */
static void a_stream_is_in_order(void **state)
{
    enum { STEPS = 30 };
    open_gpu();
    const CUdeviceptr memory = memory_new(8 * (STEPS + 1));
    for (uint32_t i = 1; i <= STEPS; i++) {
        OK(add(streams[0], memory, 1, i));
        OK(cu.copy_async(memory + 4 * i, memory, 4, streams[0]));
        OK(cu.set_words_async(memory + 4 * (STEPS + i), i, 1, streams[0]));
    }
    OK(cu.stream_synchronize(streams[0]));
    for (uint32_t i = 1; i <= STEPS; i++) {
        assert_int_equal(word(memory + 4 * i), i * (i + 1) / 2);
        assert_int_equal(word(memory + 4 * (STEPS + i)), i);
    }
    OK(cu.mem_free(memory));
    close_gpu();
}

static void events_order_streams(void **state)
{
    CUevent event, end;
    float ms = -1;
    open_gpu();
    OK(cu.event_create(&event, CU_EVENT_DEFAULT));
    OK(cu.event_create(&end, CU_EVENT_DEFAULT));
    OK(cu.event_query(event)); /* never recorded */
    const CUdeviceptr memory = memory_new(16);
    OK(cu.stream_wait_value(streams[0], memory, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(add(streams[0], memory + 4, 1, 5));
    OK(cu.event_record(event, streams[0]));
    OK(cu.stream_wait_event(streams[1], event, 0));
    OK(cu.copy_async(memory + 8, memory + 4, 4, streams[1]));
    OK(cu.event_record(end, streams[1]));
    assert_int_equal(cu.event_query(event), CUDA_ERROR_NOT_READY);
    assert_int_equal(cu.stream_query(streams[1]), CUDA_ERROR_NOT_READY);
    assert_int_equal(cu.event_elapsed(&ms, event, end), CUDA_ERROR_NOT_READY);
    set_word(memory, 1);
    OK(cu.event_synchronize(end));
    OK(cu.event_query(event));
    OK(cu.stream_query(streams[0]));
    assert_int_equal(word(memory + 8), 5);
    OK(cu.event_elapsed(&ms, event, end));
    assert_true(ms >= 0);
    OK(cu.event_destroy(event));
    OK(cu.event_destroy(end));
    assert_int_equal(cu.event_record(event, streams[0]), CUDA_ERROR_INVALID_HANDLE);
    OK(cu.mem_free(memory));
    close_gpu();
}

static void values_are_waited_for(void **state)
{
    static const struct {
        unsigned flags;
        uint32_t wanted, no, yes;
    } rows[] = {{CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 5},
                {CU_STREAM_WAIT_VALUE_GEQ | CU_STREAM_WAIT_VALUE_FLUSH, 5, 4, 0x7fffffff},
                {CU_STREAM_WAIT_VALUE_GEQ, 0xffffffff, 0xfffffffe, 3}, /* cyclic */
                {CU_STREAM_WAIT_VALUE_EQ, 5, 6, 5},
                {CU_STREAM_WAIT_VALUE_AND, 6, 9, 2}};
    open_gpu();
    const CUdeviceptr memory = memory_new(16);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set_word(memory, rows[i].no);
        OK(cu.stream_wait_value(streams[0], memory, rows[i].wanted, rows[i].flags));
        assert_int_equal(cu.stream_query(streams[0]), CUDA_ERROR_NOT_READY);
        OK(cu.stream_write_value(streams[1], memory, rows[i].yes, 0));
        OK(cu.stream_synchronize(streams[0]));
    }
    OK(cu.stream_wait_value64(streams[0], memory + 8, 1ull << 40, CU_STREAM_WAIT_VALUE_GEQ));
    OK(cu.stream_write_value64(streams[1], memory + 8, 1ull << 40, 0));
    OK(cu.stream_synchronize(streams[0]));
    assert_int_equal(cu.stream_wait_value(streams[0], memory + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cu.mem_free(memory));
    close_gpu();
}

/* Blocking streams and the legacy one wait for each other; others do not. */
static void the_legacy_stream_orders_blocking_ones(void **state)
{
    CUstream blocking;
    open_gpu();
    OK(cu.stream_create(&blocking, CU_STREAM_DEFAULT, 0));
    const CUdeviceptr memory = memory_new(16);
    OK(cu.stream_wait_value(blocking, memory, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(add(blocking, memory + 4, 1, 1));
    OK(cu.copy_async(memory + 8, memory + 4, 4, NULL));
    OK(add(blocking, memory + 8, 1, 1));
    OK(add(streams[0], memory + 12, 1, 1));
    OK(cu.stream_synchronize(streams[0]));
    assert_int_equal(cu.stream_query(NULL), CUDA_ERROR_NOT_READY);
    assert_int_equal(word(memory + 12), 1);
    assert_int_equal(word(memory + 8), 0);
    set_word(memory, 1);
    OK(cu.stream_synchronize(NULL));
    assert_int_equal(word(memory + 8), 2);
    OK(add((CUstream)2, memory + 8, 1, 1)); /* this thread's own */
    OK(cu.stream_synchronize((CUstream)2));
    assert_int_equal(word(memory + 8), 3);
    OK(cu.stream_destroy(blocking));
    OK(cu.mem_free(memory));
    close_gpu();
}

static void note(void *data)
{
    int *steps = data;
    steps[1 + steps[0]++] = getpid();
}

static void host_functions_run_in_the_host(void **state)
{
    int steps[4] = {0};
    open_gpu();
    const CUdeviceptr memory = memory_new(4);
    OK(cu.launch_host(streams[0], note, steps));
    OK(add(streams[0], memory, 1, 1));
    OK(cu.launch_host(streams[0], note, steps));
    OK(cu.stream_synchronize(streams[0]));
    assert_int_equal(steps[0], 2);
    assert_int_equal(steps[1], getpid());
    assert_int_equal(steps[2], getpid());
    OK(cu.mem_free(memory));
    close_gpu();
}

static void call_cuda(void *unused)
{
    (void)cu.stream_query(NULL);
}

static void misuse_host_function(void)
{
    open_gpu();
    OK(cu.launch_host(streams[0], call_cuda, NULL));
    OK(cu.stream_synchronize(streams[0]));
}

static void a_host_function_calls_no_cuda(void **state)
{
    const int status = status_of(misuse_host_function);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* ---- Launches ---- */

static void wait_for_launches(uint64_t started, uint64_t blocks)
{
    alarm(60);
    while (counts().launches_started < started || counts().blocks < blocks)
        usleep(500);
    alarm(0);
}

/* Two launches that wait for each other, the first of which takes all room: the second cannot
 * start before the first ends. */
static void spinning_launches_lock_each_other_out(void **state)
{
    open_gpu();
    const CUdeviceptr memory = memory_new(8);
    uint32_t *words = (uint32_t *)(uintptr_t)memory;
    const sample_meet first = {.here = words, .there = words + 1, .wanted = 1};
    const sample_meet second = {.here = words + 1, .there = words, .wanted = 1};
    OK(launch(streams[0], "sample_meet", BLOCKS, &first));
    wait_for_launches(1, BLOCKS);
    OK(launch(streams[1], "sample_meet", 1, &second));
    while (word(memory) < BLOCKS)
        usleep(500);
    assert_int_equal(counts().launches_started, 1);
    assert_int_equal(counts().launches_done, 0);
    assert_int_equal(cu.stream_query(streams[0]), CUDA_ERROR_NOT_READY);
    assert_int_equal(cu.stream_query(streams[1]), CUDA_ERROR_NOT_READY);
    assert_int_equal(word(memory + 4), 0);
    set_word(memory + 4, 1); /* lets the first go */
    OK(cu.context_synchronize());
    assert_int_equal(counts().launches_done, 2);
    OK(cu.mem_free(memory));
    close_gpu();
}

/* With room for both, they meet. */
static void launches_of_two_streams_run_at_once(void **state)
{
    open_gpu();
    const CUdeviceptr memory = memory_new(8);
    uint32_t *words = (uint32_t *)(uintptr_t)memory;
    const sample_meet first = {.here = words, .there = words + 1, .wanted = BLOCKS / 2};
    const sample_meet second = {.here = words + 1, .there = words, .wanted = BLOCKS / 2};
    OK(launch(streams[0], "sample_meet", BLOCKS / 2, &first));
    OK(launch(streams[1], "sample_meet", BLOCKS / 2, &second));
    OK(cu.context_synchronize());
    OK(cu.mem_free(memory));
    close_gpu();
}

static void cooperative_launches_start_whole(void **state)
{
    int blocks, processors;
    open_gpu();
    const CUdeviceptr memory = memory_new(12);
    uint32_t *words = (uint32_t *)(uintptr_t)memory;
    const sample_meet all = {.here = words, .there = words, .wanted = BLOCKS};
    const sample_meet one = {.here = words + 1, .there = words + 2, .wanted = 1};
    void *parameters[] = {(void *)(uintptr_t)&all};
    const CUfunction meet = function("sample_meet");
    OK(cu.occupancy(&blocks, meet, 1, 0));
    OK(cu.device_get_attribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    assert_int_equal(blocks * processors, BLOCKS);
    assert_int_equal(cu.launch_cooperative(meet, BLOCKS + 1, 1, 1, 1, 1, 1, 0, streams[0],
                                           parameters),
                     CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    OK(launch(streams[1], "sample_meet", 1, &one));
    wait_for_launches(1, 1);
    OK(cu.launch_cooperative(meet, BLOCKS, 1, 1, 1, 1, 1, 0, streams[0], parameters));
    assert_int_equal(counts().launches_started, 1); /* there is no room for all of its blocks */
    set_word(memory + 8, 1);
    OK(cu.context_synchronize());
    assert_int_equal(word(memory), BLOCKS);
    OK(cu.mem_free(memory));
    close_gpu();
}

static void functions_are_known_by_name(void **state)
{
    static const uint32_t fatbin[4] = {0xba55ed50};
    CUfunction found;
    CUmodule other;
    int value;
    open_gpu();
    assert_int_equal(cu.module_load(&other, "ELF"), CUDA_ERROR_INVALID_IMAGE);
    OK(cu.module_load(&other, fatbin));
    assert_int_equal(cu.module_get_function(&found, other, "none"), CUDA_ERROR_NOT_FOUND);
    OK(cu.module_get_function(&found, other, "sample_add"));
    OK(cu.function_get_attribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, found));
    assert_int_equal(value, 1024);
    OK(cu.function_set_attribute(found, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    OK(cu.occupancy(&value, found, 1024, 100000));
    assert_int_equal(value, 1);
    OK(cu.occupancy(&value, found, 1024, 100001));
    assert_int_equal(value, 0);
    OK(cu.module_unload(other));
    assert_int_equal(cu.occupancy(&value, found, 1, 0), CUDA_ERROR_INVALID_HANDLE);
    close_gpu();
}

/* A kernel of libring, of many threads: it gathers two buffers in a flat one. */
static void kernels_of_the_library_run(void **state)
{
    enum { BYTES = 10000 };
    unsigned char got[2 * BYTES];
    CUdeviceptr flat, table;
    open_gpu();
    const CUdeviceptr first = memory_new(BYTES), second = memory_new(BYTES);
    const cuda_piece pieces[] = {{(void *)(uintptr_t)first, BYTES, BYTES},
                                 {(void *)(uintptr_t)second, 0, BYTES}};
    OK(cu.mem_alloc(&flat, sizeof got));
    OK(cu.mem_alloc(&table, sizeof pieces));
    OK(cu.set_bytes_async(first, 1, BYTES, streams[0]));
    OK(cu.set_bytes_async(second, 2, BYTES, streams[0]));
    OK(cu.copy_to_device_async(table, pieces, sizeof pieces, streams[0]));
    const cuda_pack_args args = {.pieces = (const void *)(uintptr_t)table,
                                 .flat = (char *)(uintptr_t)flat,
                                 .count = 2};
    void *parameters[] = {(void *)(uintptr_t)&args};
    OK(cu.launch(function("pack"), 4, 1, 1, CUDA_BLOCK, 1, 1, 0, streams[0], parameters, NULL));
    OK(cu.copy_to_host_async(got, flat, sizeof got, streams[0]));
    for (int i = 0; i < BYTES; i++)
        assert_true(got[i] == 2 && got[BYTES + i] == 1);
    const CUdeviceptr all[] = {first, second, flat, table};
    for (int i = 0; i < 4; i++)
        OK(cu.mem_free(all[i]));
    close_gpu();
}

/* ---- Failures ---- */

static void fail_and_stay(const char *kernel, const void *args, CUresult expected)
{
    CUdeviceptr memory;
    OK(launch(streams[0], kernel, 1, args));
    assert_int_equal(cu.stream_synchronize(streams[0]), expected);
    assert_int_equal(cu.mem_alloc(&memory, 4), expected);
    assert_int_equal(cu.stream_query(streams[1]), expected);
}

static void a_trap_is_sticky(void **state)
{
    open_gpu();
    fail_and_stay("sample_trap", &(sample_trap){0}, CUDA_ERROR_LAUNCH_FAILED);
}

static void a_fault_is_sticky(void **state)
{
    open_gpu();
    fail_and_stay("sample_touch", &(sample_touch){.at = (uint32_t *)8}, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void a_use_after_free_is_found(void **state)
{
    open_gpu();
    const CUdeviceptr memory = memory_new(4), other = memory_new(4);
    const sample_touch args = {.at = (uint32_t *)(uintptr_t)memory, .is_checked = 1};
    OK(launch(streams[0], "sample_touch", 1, &args));
    OK(cu.stream_synchronize(streams[0]));
    assert_int_equal(word(memory), 1);
    assert_int_equal(memory / PAGE, other / PAGE);
    OK(cu.mem_free(memory));
    fail_and_stay("sample_touch", &args, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void the_nth_call_fails(void **state)
{
    CUdeviceptr memory = 0;
    CUevent event;
    open_gpu();
    const uint64_t calls = counts().calls;
    fake.fail_nth(2, CUDA_ERROR_OUT_OF_MEMORY);
    OK(cu.event_create(&event, 0));
    assert_null(fake.last_failed());
    assert_int_equal(cu.mem_alloc(&memory, 4), CUDA_ERROR_OUT_OF_MEMORY);
    assert_string_equal(fake.last_failed(), "cuMemAlloc_v2");
    assert_int_equal(counts().allocations, 0);
    OK(cu.event_destroy(event));
    assert_int_equal(counts().calls, calls + 3);
    (fake.fail)("cuEventCreate", CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(cu.event_create(&event, 0), CUDA_ERROR_NOT_SUPPORTED);
    (fake.fail)("", 0);
    close_gpu();
}

/* A call that fails has done nothing: made again, it does what it should, and nothing is left. */
#define AGAIN(call) assert_true((call) == CUDA_SUCCESS || (call) == CUDA_SUCCESS)

static void use_and_leave(void)
{
    CUdeviceptr memory, pooled;
    CUstream stream;
    CUevent event;
    CUgraph graph;
    CUgraphExec exec;
    CUfunction found;
    void *pinned;
    AGAIN(cu.mem_alloc(&memory, 64));
    AGAIN(cu.host_alloc(&pinned, 64, 0));
    AGAIN(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING, 0));
    AGAIN(cu.event_create(&event, 0));
    AGAIN(cu.mem_alloc_async(&pooled, 64, stream));
    AGAIN(cu.set_words_async(memory, 1, 1, stream));
    AGAIN(cu.module_get_function(&found, module, "sample_add"));
    AGAIN(cu.begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    const sample_add args = {.words = (void *)(uintptr_t)memory, .count = 1, .value = 1};
    void *parameters[] = {(void *)(uintptr_t)&args};
    AGAIN(cu.launch(found, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    AGAIN(cu.end_capture(stream, &graph));
    AGAIN(cu.graph_instantiate(&exec, graph, 0));
    AGAIN(cu.graph_launch(exec, stream));
    AGAIN(cu.event_record(event, stream));
    AGAIN(cu.event_synchronize(event));
    assert_int_equal(word(memory), 2);
    AGAIN(cu.graph_exec_destroy(exec));
    AGAIN(cu.graph_destroy(graph));
    AGAIN(cu.mem_free_async(pooled, stream));
    AGAIN(cu.stream_synchronize(stream));
    AGAIN(cu.event_destroy(event));
    AGAIN(cu.stream_destroy(stream));
    AGAIN(cu.host_free(pinned));
    AGAIN(cu.mem_free(memory));
}

static void a_call_that_fails_has_done_nothing(void **state)
{
    uint64_t n = 0;
    open_gpu();
    do {
        fake.fail_nth(++n, CUDA_ERROR_OUT_OF_MEMORY);
        use_and_leave();
    } while (fake.last_failed() != NULL);
    assert_true(n > 20);
    fake.fail_nth(0, 0);
    close_gpu();
}

/* ---- Memory ---- */

static unsigned long long id_of(CUdeviceptr memory)
{
    unsigned long long id;
    OK(cu.pointer_get_attribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory));
    return id;
}

static void addresses_are_given_again_and_ids_are_not(void **state)
{
    CUdeviceptr start;
    size_t bytes;
    open_gpu();
    const CUdeviceptr first = memory_new(100), second = memory_new(100);
    assert_int_equal(first % 512, 0);
    assert_int_not_equal(first % PAGE, 0);
    assert_int_equal(second, first + 512);
    const unsigned long long id = id_of(first);
    OK(cu.get_address_range(&start, &bytes, first + 99));
    assert_true(start == first && bytes == 100);
    assert_int_equal(cu.get_address_range(&start, &bytes, first + 100), CUDA_ERROR_NOT_FOUND);
    OK(cu.mem_free(first));
    assert_int_equal(cu.mem_free(first), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr again;
    OK(cu.mem_alloc(&again, 100));
    assert_int_equal(again, first);
    assert_int_not_equal(word(again), 0);
    assert_int_not_equal(id_of(again), id);
    OK(cu.mem_free(again));
    OK(cu.mem_free(second));
    assert_int_equal(cu.mem_alloc(&again, (size_t)1 << 40), CUDA_ERROR_OUT_OF_MEMORY);
    close_gpu();
}

typedef struct pointer_facts {
    unsigned type, managed, capable;
    int ordinal;
    void *pool, *host;
} pointer_facts;

static pointer_facts facts_of(CUdeviceptr memory)
{
    pointer_facts f = {.type = 99};
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                   CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                                   CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *outs[] = {&f.type, &f.managed, &f.ordinal, &f.capable, &f.pool, &f.host};
    OK(cu.pointer_get_attributes(6, asked, outs, memory));
    return f;
}

static void attributes_tell_what_a_pointer_is(void **state)
{
    CUdeviceptr pooled, managed;
    void *pinned;
    int own = 0;
    open_gpu();
    const CUdeviceptr memory = memory_new(64);
    OK(cu.mem_alloc_async(&pooled, 64, streams[0]));
    OK(cu.managed_alloc(&managed, 64, 1));
    OK(cu.host_alloc(&pinned, 64, CU_MEMHOSTALLOC_PORTABLE));
    const pointer_facts device = facts_of(memory + 63), pool = facts_of(pooled);
    const pointer_facts both = facts_of(managed), host = facts_of((uintptr_t)pinned);
    assert_true(device.type == CU_MEMORYTYPE_DEVICE && device.capable == 1 && device.host == NULL);
    assert_true(pool.type == CU_MEMORYTYPE_DEVICE && pool.capable == 0 && pool.pool != NULL);
    assert_true(both.managed == 1 && both.capable == 0 && both.host == (void *)managed);
    assert_true(host.type == CU_MEMORYTYPE_HOST && host.host == pinned && host.ordinal == 0);
    assert_int_equal(facts_of((uintptr_t)&own).type, 0);
    assert_int_equal(facts_of((uintptr_t)&own).ordinal, -2);
    assert_int_equal(cu.pointer_get_attribute(&own, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                              (uintptr_t)&own),
                     CUDA_ERROR_INVALID_VALUE);
    OK(cu.mem_free_async(pooled, streams[0]));
    OK(cu.mem_free(managed));
    OK(cu.host_free(pinned));
    OK(cu.mem_free(memory));
    close_gpu();
}

/* Freed in the order of the stream, not before. */
static void memory_is_freed_in_order(void **state)
{
    CUdeviceptr pooled;
    open_gpu();
    const CUdeviceptr memory = memory_new(8);
    OK(cu.mem_alloc_async(&pooled, 64, streams[0]));
    OK(cu.stream_wait_value(streams[0], memory, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cu.mem_free_async(pooled, streams[0]));
    assert_int_equal(counts().allocations, 2);
    assert_int_equal(cu.mem_free_async(pooled, streams[0]), CUDA_ERROR_INVALID_VALUE);
    set_word(memory, 1);
    OK(cu.stream_synchronize(streams[0]));
    assert_int_equal(counts().allocations, 1);
    OK(cu.mem_free(memory));
    close_gpu();
}

static void add_to_host(void *host)
{
    CUdeviceptr seen;
    OK(cu.host_device_pointer(&seen, host, 0));
    OK(add(streams[0], seen, 1, 5));
    OK(cu.stream_synchronize(streams[0]));
}

static void kernels_reach_pinned_memory(void **state)
{
    uint32_t *pinned, *heap = malloc(3 * PAGE);
    CUdeviceptr managed;
    unsigned flags;
    open_gpu();
    OK(cu.host_alloc((void **)&pinned, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    *pinned = 2;
    add_to_host(pinned);
    assert_int_equal(*pinned, 7);
    OK(cu.host_get_flags(&flags, pinned));
    assert_int_equal(flags, CU_MEMHOSTALLOC_DEVICEMAP);
    OK(cu.managed_alloc(&managed, 64, 1));
    *(uint32_t *)(uintptr_t)managed = 3;
    OK(add(NULL, managed, 1, 5));
    OK(cu.stream_synchronize(NULL));
    assert_int_equal(*(uint32_t *)(uintptr_t)managed, 8);
    heap[0] = heap[3 * PAGE / 4 - 1] = 4;
    OK(cu.host_register(heap, 3 * PAGE, 0));
    assert_int_equal(cu.host_register(heap, 4, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    add_to_host(heap);
    add_to_host(heap + 3 * PAGE / 4 - 1);
    assert_true(heap[0] == 9 && heap[3 * PAGE / 4 - 1] == 9);
    OK(cu.host_unregister(heap));
    OK(cu.host_register(heap, 16, 0)); /* two of one page */
    OK(cu.host_register(heap + 4, 16, 0));
    OK(cu.host_unregister(heap));
    heap[4] = 1;
    add_to_host(heap + 4);
    assert_int_equal(heap[4], 6);
    OK(cu.host_unregister(heap + 4));
    assert_int_equal(cu.host_register((void *)(uintptr_t)PAGE, PAGE, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cu.host_unregister(heap), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    assert_true(heap[0] == 9 && heap[3 * PAGE / 4 - 1] == 9);
    free(heap);
    OK(cu.host_free(pinned));
    OK(cu.mem_free(managed));
    close_gpu();
}

/* Memory that processes share stays that. */
static void shared_memory_is_registered_in_place(void **state)
{
    open_gpu();
    const int file = memfd_create("shared", MFD_CLOEXEC);
    assert_int_equal(ftruncate(file, 2 * PAGE), 0);
    uint32_t *here = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    uint32_t *there = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    there[PAGE / 4] = 2;
    OK(cu.host_register(here + PAGE / 4, 64, 0));
    add_to_host(here + PAGE / 4);
    assert_int_equal(there[PAGE / 4], 7);
    OK(cu.host_unregister(here + PAGE / 4));
    there[PAGE / 4] = 8;
    assert_int_equal(here[PAGE / 4], 8);
    munmap(here, 2 * PAGE);
    munmap(there, 2 * PAGE);
    close(file);
    close_gpu();
}

static void pieces_are_mapped(void **state)
{
    const CUmemAllocationProp properties = {.type = 1,
                                            .requestedHandleTypes = 1,
                                            .location = {.type = 1, .id = 0}};
    const CUmemAccessDesc access = {.location = {.type = 1, .id = 0}, .flags = 3};
    CUmemGenericAllocationHandle made, imported;
    CUdeviceptr range;
    size_t granule;
    int file;
    open_gpu();
    OK(cu.get_granularity(&granule, &properties, 0));
    assert_int_equal(granule, GRANULE);
    OK(cu.reserve(&range, 2 * GRANULE, 0, 0, 0));
    OK(cu.create(&made, GRANULE, &properties, 0));
    OK(cu.export_handle(&file, made, 1, 0));
    OK(cu.import_handle(&imported, (void *)(intptr_t)file, 1));
    close(file);
    OK(cu.map(range, GRANULE, 0, made, 0));
    OK(cu.map(range + GRANULE, GRANULE, 0, imported, 0));
    OK(cu.set_access(range, 2 * GRANULE, &access, 1));
    OK(cu.release(made));
    OK(cu.release(imported));
    OK(cu.set_words_async(range, 4, 1, streams[0]));
    OK(add(streams[0], range + GRANULE, 1, 5));
    OK(cu.stream_synchronize(streams[0]));
    assert_int_equal(word(range), 9);
    assert_int_equal(facts_of(range).capable, 0);
    assert_int_equal(counts().allocations, 2);
    OK(cu.unmap(range, 2 * GRANULE));
    OK(cu.unreserve(range, 2 * GRANULE));
    close_gpu();
}

/* ---- Another process ---- */

typedef struct handles {
    CUipcMemHandle memory;
    CUipcEventHandle event;
} handles;

static int to_child[2], to_parent[2];

static void say(int file, const void *what, size_t bytes)
{
    assert_int_equal(write(file, what, bytes), (ssize_t)bytes);
}

static void hear(int file, void *what, size_t bytes)
{
    assert_int_equal(read(file, what, bytes), (ssize_t)bytes);
}

/* Waits for the parent's event, adds to the parent's memory, and says so. */
static void use_handles(void)
{
    handles h;
    CUdeviceptr memory, again;
    CUevent event;
    open_gpu();
    hear(to_child[0], &h, sizeof h);
    OK(cu.ipc_open_memory(&memory, h.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cu.ipc_open_memory(&again, h.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    assert_int_equal(memory, again);
    OK(cu.ipc_open_event(&event, h.event));
    assert_int_equal(cu.event_query(event), CUDA_ERROR_NOT_READY);
    say(to_parent[1], "r", 1);
    OK(cu.stream_wait_event(streams[0], event, 0));
    OK(add(streams[0], memory, 1, 5));
    OK(cu.event_record(event, streams[0]));
    OK(cu.stream_synchronize(streams[0]));
    OK(cu.ipc_close_memory(again));
    assert_int_equal(word(memory), 8);
    OK(cu.ipc_close_memory(memory));
    OK(cu.event_destroy(event));
    say(to_parent[1], "d", 1);
    close_gpu();
}

static void processes_share_memory_and_events(void **state)
{
    handles h;
    char done;
    CUevent event;
    CUdeviceptr opened;
    assert_int_equal(pipe(to_child) | pipe(to_parent), 0);
    const pid_t child = fork();
    if (child == 0) {
        use_handles();
        _exit(0);
    }
    open_gpu();
    const CUdeviceptr before = memory_new(100), memory = memory_new(64);
    const CUdeviceptr gate = memory_new(4);
    OK(cu.event_create(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    OK(cu.ipc_get_memory(&h.memory, memory + 8)); /* is of the whole */
    OK(cu.ipc_get_event(&h.event, event));
    assert_int_equal(cu.ipc_open_memory(&opened, h.memory, 1), CUDA_ERROR_INVALID_CONTEXT);
    OK(cu.stream_wait_value(streams[0], gate, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cu.set_words_async(memory, 3, 1, streams[0]));
    OK(cu.event_record(event, streams[0]));
    say(to_child[1], &h, sizeof h);
    alarm(60);
    hear(to_parent[0], &done, 1);
    set_word(gate, 1);
    hear(to_parent[0], &done, 1);
    assert_int_equal(done, 'd');
    OK(cu.event_synchronize(event)); /* the child's record */
    assert_int_equal(word(memory), 8);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    alarm(0);
    OK(cu.event_destroy(event));
    OK(cu.mem_free(before));
    OK(cu.mem_free(memory));
    OK(cu.mem_free(gate));
    close_gpu();
}

/* ---- Captures ---- */

static CUgraphExec captured(CUstream stream, CUgraph *out)
{
    CUgraphExec exec;
    OK(cu.end_capture(stream, out));
    OK(cu.graph_instantiate(&exec, *out, 0));
    return exec;
}

static void count_end(void *data)
{
    ++*(int *)data;
}

/* Two streams, joined by events; the second's ops are in the graph, too. */
static void a_graph_is_replayed(void **state)
{
    enum { REPLAYS = 100 };
    CUevent fork_event, join_event;
    CUstreamCaptureStatus status;
    CUuserObject object;
    CUgraph graph, now;
    uint64_t id;
    int ended = 0;
    open_gpu();
    OK(cu.event_create(&fork_event, CU_EVENT_DISABLE_TIMING));
    OK(cu.event_create(&join_event, CU_EVENT_DISABLE_TIMING));
    const CUdeviceptr memory = memory_new(16);
    OK(cu.begin_capture(streams[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(add(streams[0], memory, 1, 1));
    OK(cu.event_record(fork_event, streams[0]));
    OK(cu.stream_wait_event(streams[1], fork_event, 0));
    OK(add(streams[1], memory + 4, 1, 2));
    OK(cu.event_record(join_event, streams[1]));
    OK(cu.stream_wait_event(streams[0], join_event, 0));
    OK(cu.copy_async(memory + 8, memory + 4, 4, streams[0]));
    OK(cu.stream_is_capturing(streams[1], &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cu.stream_get_capture(streams[0], &status, &id, &now, NULL, NULL));
    OK(cu.user_object_create(&object, &ended, count_end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cu.graph_retain_user_object(now, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    assert_int_equal(counts().launches_done, 0);
    const CUgraphExec exec = captured(streams[0], &graph);
    assert_ptr_equal(now, graph);
    assert_int_equal(cu.event_query(join_event), CUDA_ERROR_CAPTURED_EVENT);
    assert_int_equal(word(memory), 0);
    for (int i = 0; i < REPLAYS; i++)
        OK(cu.graph_launch(exec, streams[i % 2]));
    OK(cu.context_synchronize());
    assert_int_equal(word(memory), REPLAYS);
    assert_int_equal(word(memory + 8), 2 * REPLAYS);
    OK(cu.graph_destroy(graph));
    OK(cu.context_synchronize());
    assert_int_equal(ended, 0);
    OK(cu.graph_exec_destroy(exec));
    OK(cu.context_synchronize());
    assert_int_equal(ended, 1);
    OK(cu.event_destroy(fork_event));
    OK(cu.event_destroy(join_event));
    OK(cu.mem_free(memory));
    close_gpu();
}

static CUevent outside;

static CUresult query_stream(void)
{
    return cu.stream_query(streams[0]);
}

static CUresult query_event(void)
{
    return cu.event_query(outside);
}

static CUresult allocate(void)
{
    CUdeviceptr memory;
    return cu.mem_alloc(&memory, 4);
}

static CUresult wait_outside(void)
{
    return cu.stream_wait_event(streams[0], outside, 0);
}

static CUresult copy_pageable(void)
{
    return cu.copy_async(forbidden, (uintptr_t)&forbidden, 4, streams[0]);
}

static void some_calls_end_a_capture(void **state)
{
    static const struct {
        CUresult (*call)(void);
        CUresult result;
    } rows[] = {{query_stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
                {query_event, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
                {allocate, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
                {copy_pageable, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
                {wait_outside, CUDA_ERROR_STREAM_CAPTURE_ISOLATION}};
    CUstreamCaptureStatus status;
    CUgraph graph;
    open_gpu();
    OK(cu.event_create(&outside, 0));
    OK(cu.event_record(outside, streams[1]));
    OK(cu.stream_destroy(streams[0]));
    OK(cu.stream_create(&streams[0], CU_STREAM_DEFAULT, 0));
    forbidden = memory_new(4);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        OK(cu.begin_capture(streams[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
        assert_int_equal(rows[i].call(), rows[i].result);
        OK(cu.stream_is_capturing(streams[0], &status));
        assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        assert_int_equal(cu.set_words_async(forbidden, 1, 1, streams[0]),
                         CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        assert_int_equal(cu.end_capture(streams[0], &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        assert_null(graph);
    }
    OK(cu.event_destroy(outside));
    OK(cu.mem_free(forbidden));
    close_gpu();
}

static void captures_have_modes_and_ends(void **state)
{
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr memory;
    CUevent event;
    CUgraph graph;
    open_gpu();
    OK(cu.event_create(&event, CU_EVENT_DISABLE_TIMING));
    OK(cu.begin_capture(streams[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cu.exchange_capture_mode(&relaxed));
    assert_int_equal(relaxed, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cu.mem_alloc(&memory, 4)); /* the thread says that it is safe */
    OK(cu.exchange_capture_mode(&relaxed));
    assert_int_equal(cu.end_capture(streams[1], &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    OK(cu.event_record(event, streams[0]));
    OK(cu.stream_wait_event(streams[1], event, 0));
    OK(cu.set_words_async(memory, 1, 1, streams[1]));
    assert_int_equal(cu.end_capture(streams[0], &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    OK(cu.stream_synchronize(streams[1])); /* it does not capture any more */
    OK(cu.event_destroy(event));
    OK(cu.mem_free(memory));
    close_gpu();
}

/* ---- Devices ---- */

static void devices_have_memory_of_their_own(void **state)
{
    CUdeviceptr memory, other;
    CUcontext second, before;
    CUstream stream;
    char address[16];
    int count, can;
    open_gpu();
    OK(cu.device_count(&count));
    assert_int_equal(count, 2);
    OK(cu.device_get_pci_bus_id(address, sizeof address, 1));
    assert_string_equal(address, "0000:3C:00.0");
    OK(cu.device_can_access_peer(&can, 0, 1));
    assert_int_equal(can, 1);
    memory = memory_new(4);
    OK(cu.primary_retain(&second, 1));
    OK(cu.push_current(second));
    OK(cu.enable_peer_access(context, 0));
    assert_int_equal(cu.enable_peer_access(context, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    OK(cu.mem_alloc(&other, 4));
    OK(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING, 0));
    OK(cu.set_words_async(other, 7, 1, stream));
    OK(cu.copy_async(memory, other, 4, stream));
    assert_int_equal(add(stream, other, 1, 1), CUDA_ERROR_INVALID_HANDLE); /* another's function */
    OK(cu.stream_synchronize(stream));
    assert_int_equal(word(memory), 7);
    assert_int_equal(facts_of(other).ordinal, 1);
    OK(cu.mem_free(other));
    OK(cu.stream_destroy(stream));
    OK(cu.pop_current(&before));
    OK(cu.primary_release(1));
    OK(cu.mem_free(memory));
    close_gpu();
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {TEST(the_host_cannot_touch_memory_of_the_device),
                                              TEST(a_child_has_no_gpu),
                                              TEST(the_gpu_process_ends_with_its_host),
                                              TEST(any_thread_starts_the_gpu),
                                              TEST(kernels_write_memory),
                                              TEST(a_stream_is_in_order),
                                              TEST(events_order_streams),
                                              TEST(values_are_waited_for),
                                              TEST(the_legacy_stream_orders_blocking_ones),
                                              TEST(host_functions_run_in_the_host),
                                              TEST(a_host_function_calls_no_cuda),
                                              TEST(spinning_launches_lock_each_other_out),
                                              TEST(launches_of_two_streams_run_at_once),
                                              TEST(cooperative_launches_start_whole),
                                              TEST(functions_are_known_by_name),
                                              TEST(kernels_of_the_library_run),
                                              TEST(a_trap_is_sticky),
                                              TEST(a_fault_is_sticky),
                                              TEST(a_use_after_free_is_found),
                                              TEST(the_nth_call_fails),
                                              TEST(a_call_that_fails_has_done_nothing),
                                              TEST(addresses_are_given_again_and_ids_are_not),
                                              TEST(attributes_tell_what_a_pointer_is),
                                              TEST(memory_is_freed_in_order),
                                              TEST(kernels_reach_pinned_memory),
                                              TEST(shared_memory_is_registered_in_place),
                                              TEST(pieces_are_mapped),
                                              TEST(processes_share_memory_and_events),
                                              TEST(a_graph_is_replayed),
                                              TEST(some_calls_end_a_capture),
                                              TEST(captures_have_modes_and_ends),
                                              TEST(devices_have_memory_of_their_own)};
    cu = cuda_functions();
    fake = fake_cuda_functions();
    return run_one(tests, sizeof tests / sizeof *tests, argc, argv);
}
