/* SPDX-License-Identifier: Apache-2.0
 * Tests the double of NVIDIA's driver: how it counts calls and refuses those that libring must not
 * make while it communicates. Each test has a process of its own. Usage: test_kernels.gpu_rules
 * TEST */
#include "fake_cuda_table.h"
#include "ring_caller.h"
#include "sample_kernels.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit_test.h"

#include "one_test.h"

enum { MOST_ROWS = 64 };

static cuda_table cu;
static fake_cuda_table fake;
static CUfunction adding;
static CUmodule module;
static CUstream stream;
static CUdeviceptr memory; /* 64 bytes */

#define OK(call) assert_int_equal(call, CUDA_SUCCESS)

static void open_gpu(void)
{
    CUcontext context;
    alarm(60); /* no test waits longer */
    OK(cu.init(0));
    OK(cu.primary_retain(&context, 0));
    OK(cu.set_current(context));
    OK(cu.module_load(&module, "RINGEMU"));
    OK(cu.module_get_function(&adding, module, "sample_add"));
    OK(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING, 0));
    OK(cu.mem_alloc(&memory, 64));
    OK(cu.set_words_async(memory, 0, 16, stream));
    OK(cu.stream_synchronize(stream));
}

/* By the object that is taken for libring. */
static CUresult add_by_caller(void)
{
    const sample_add args = {.words = (void *)(uintptr_t)memory, .count = 1, .value = 1};
    void *parameters[] = {(void *)(uintptr_t)&args};
    return caller_launches(&cu, adding, stream, parameters);
}

/* ---- The census --------------------------------------------------------------------------- */

static void *call_elsewhere(void *unused)
{
    CUdeviceptr other;
    CUcontext context;
    if (cu.primary_retain(&context, 0) != CUDA_SUCCESS || cu.set_current(context) != CUDA_SUCCESS ||
        caller_allocates(&cu, &other) != CUDA_SUCCESS || caller_frees(&cu, other) != CUDA_SUCCESS)
        return NULL;
    return &cu;
}

static void the_census_counts_by_thread_and_caller(void **state)
{
    fake_cuda_census_row rows[MOST_ROWS];
    uint32_t words[16];
    pthread_t thread;
    void *ended;
    open_gpu();
    OK(add_by_caller());
    fake.census_begin();
    OK(add_by_caller());
    OK(add_by_caller());
    OK(cu.copy((uintptr_t)words, memory, sizeof words));
    OK(cu.stream_write_value(stream, memory, 1, 0));
    OK(cu.stream_synchronize(stream));
    assert_int_equal(pthread_create(&thread, NULL, call_elsewhere, NULL), 0);
    assert_int_equal(pthread_join(thread, &ended), 0);
    assert_non_null(ended);
    const int count = fake.census_end(rows, MOST_ROWS);
    OK(add_by_caller()); /* is not counted */
    const fake_cuda_census library = fake.census_sum(rows, count, true, 0);
    assert_int_equal(library.calls, 4);
    assert_int_equal(library.launches, 2);
    assert_int_equal(library.allocations, 2);
    assert_int_equal(library.synchronisations + library.words + library.copies, 0);
    assert_int_equal(fake.census_sum(rows, count, true, getpid()).calls, 2);
    const fake_cuda_census program = fake.census_sum(rows, count, false, getpid());
    assert_int_equal(program.calls, 3);
    assert_int_equal(program.copies, 1);
    assert_int_equal(program.words, 1);
    assert_int_equal(program.synchronisations, 2);
    assert_int_equal(program.functions, 0);
}

/* ---- Refused calls ------------------------------------------------------------------------ */

static void allocate(void)
{
    CUdeviceptr other;
    OK(caller_allocates(&cu, &other));
}

static void launch_unloaded(void)
{
    OK(add_by_caller());
}

static void make_permitted_calls(void)
{
    int threads;
    CUdeviceptr other;
    OK(cu.mem_alloc(&other, 64)); /* the program's own */
    OK(cu.mem_free(other));
    fake.permit(true);
    OK(caller_allocates(&cu, &other));
    OK(caller_frees(&cu, other));
    fake.permit(false);
    OK(cu.function_get_attribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, adding));
    OK(add_by_caller());
    OK(cu.stream_synchronize(stream));
}

/* @param text  of the message that ends the process; NULL: nothing ends it. */
static void expect_end(const char *mode, void (*body)(void), const char *text)
{
    char said[8192] = "";
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
        setenv("FAKE_CUDA_R1", mode, 1);
        open_gpu();
        body();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got = 1; got > 0 && length<sizeof said - 1; length += got> 0 ? (size_t)got : 0)
        got = read(ends[0], said + length, sizeof said - 1 - length);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (text != NULL && strcmp(mode, "1") == 0)
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    else
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (text != NULL ? strstr(said, text) == NULL : strstr(said, "FAKE_CUDA_R1") != NULL)
        fail_msg("\"%s\" and not: %s", text != NULL ? text : "nothing", said);
}

static void calls_of_libring_that_may_wait_are_refused(void **state)
{
    expect_end("1", allocate, "libring calls cuMemAlloc_v2() while it communicates");
    expect_end("1", launch_unloaded, "libring calls cuLaunchKernel() of a function that is not");
    expect_end("print", allocate, "libring calls cuMemAlloc_v2() while it communicates");
    expect_end("0", allocate, NULL);
}

static void permitted_calls_are_not_refused(void **state)
{
    expect_end("1", make_permitted_calls, NULL);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {TEST(the_census_counts_by_thread_and_caller),
                                              TEST(calls_of_libring_that_may_wait_are_refused),
                                              TEST(permitted_calls_are_not_refused)};
    cu = cuda_functions();
    fake = fake_cuda_functions();
    return run_one(tests, sizeof tests / sizeof *tests, argc, argv);
}
