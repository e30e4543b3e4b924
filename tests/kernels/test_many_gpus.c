/* SPDX-License-Identifier: Apache-2.0
 * Tests the double of NVIDIA's driver: several devices in a process, default streams and captures
 * of several threads, and machines that lack peer access or handles for other processes. Each test
 * has a process of its own. Usage: test_kernels.many_gpus TEST */
#include "fake_cuda_table.h"
#include "sample_kernels.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit_test.h"

#include "one_test.h"

enum { DEVICES_MOST = 16 };

#define LEGACY ((CUstream)1)
#define PER_THREAD ((CUstream)2)
#define OK(call) assert_int_equal(call, CUDA_SUCCESS)

static cuda_table cu;
static fake_cuda_table fake;
static CUresult (*get_id)(CUstream stream, unsigned long long *out); /* optional in the table */
static int devices;
static CUcontext contexts[DEVICES_MOST];
static CUmodule modules[DEVICES_MOST];
static CUdeviceptr words[DEVICES_MOST]; /* 64 bytes of each device */

static void open_gpus(const char *count)
{
    setenv("FAKE_CUDA_DEVICES", count, 1);
    alarm(60); /* no test waits longer */
    OK(cu.init(0));
    OK(cu.device_count(&devices));
    assert_int_equal(devices, atoi(count));
    for (int i = devices; i-- > 0;) {
        OK(cu.primary_retain(&contexts[i], i));
        OK(cu.set_current(contexts[i]));
        OK(cu.module_load(&modules[i], "RINGEMU"));
        OK(cu.mem_alloc(&words[i], 64));
        OK(cu.set_words_async(words[i], 0, 16, NULL));
        OK(cu.stream_synchronize(NULL));
    }
}

static uint32_t word(CUdeviceptr at)
{
    uint32_t value;
    fake.read(&value, (const void *)(uintptr_t)at, sizeof value);
    return value;
}

/* By a kernel of that device. */
static CUresult add(int device, CUstream stream, CUdeviceptr at, uint32_t value)
{
    const sample_add args = {.words = (void *)(uintptr_t)at, .count = 1, .value = value};
    void *parameters[] = {(void *)(uintptr_t)&args};
    CUfunction adding;
    OK(cu.module_get_function(&adding, modules[device], "sample_add"));
    return cu.launch(adding, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

/* ---- Devices ------------------------------------------------------------------------------ */

static void there_may_be_many_devices(void **state)
{
    char address[16];
    open_gpus("16");
    OK(cu.device_get_pci_bus_id(address, sizeof address, 15));
    assert_string_equal(address, "0000:4A:00.0");
    for (int i = 0; i < devices; i++) {
        OK(cu.set_current(contexts[i]));
        OK(add(i, NULL, words[i], (uint32_t)i + 1));
        OK(cu.context_synchronize());
    }
    for (int i = 0; i < devices; i++)
        assert_int_equal(word(words[i]), i + 1);
}

static void devices_may_belong_to_mps(void **state)
{
    int value;
    setenv("FAKE_CUDA_MPS", "1", 1);
    open_gpus("1");
    OK(cu.device_get_attribute(&value, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0));
    assert_int_equal(value, 1);
}

static void devices_usually_do_not_belong_to_mps(void **state)
{
    int value;
    open_gpus("1");
    OK(cu.device_get_attribute(&value, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0));
    assert_int_equal(value, 0);
}

/* ---- Processes that share a device -------------------------------------------------------- */

enum { PLACES = 4 };

/* Starts a process that occupies blocks of the device until it is killed. @return its id. */
static pid_t occupy(unsigned blocks)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        open_gpus("1");
        const sample_meet args = {.here = (void *)(uintptr_t)words[0],
                                  .there = (void *)(uintptr_t)(words[0] + 4),
                                  .wanted = 1};
        void *parameters[] = {(void *)(uintptr_t)&args};
        CUfunction meeting;
        OK(cu.module_get_function(&meeting, modules[0], "sample_meet"));
        OK(cu.launch(meeting, blocks, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
        while (word(words[0]) < blocks)
            usleep(1000);
        (void)!write(ready[1], "", 1);
        pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

/* Expects that a block of this process runs beside those of another one, or not until those have
 * ended. */
static void expect_beside(unsigned blocks, bool beside)
{
    char file[] = "/tmp/places-XXXXXX";
    close(mkstemp(file));
    setenv("FAKE_CUDA_SHARED", file, 1);
    setenv("FAKE_CUDA_BLOCKS", "4", 1);
    const pid_t other = occupy(blocks);
    open_gpus("1");
    OK(add(0, NULL, words[0], 1));
    usleep(50000);
    assert_int_equal(word(words[0]), beside);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    OK(cu.context_synchronize());
    assert_int_equal(word(words[0]), 1);
    unlink(file);
}

static void processes_take_turns(void **state)
{
    expect_beside(1, false);
}

static void processes_run_at_once_under_mps(void **state)
{
    setenv("FAKE_CUDA_MPS", "1", 1);
    expect_beside(PLACES - 1, true);
}

static void processes_share_the_places_of_a_device(void **state)
{
    setenv("FAKE_CUDA_MPS", "1", 1);
    expect_beside(PLACES, false);
}

/* ---- Default streams ---------------------------------------------------------------------- */

static void default_streams_belong_to_the_current_context(void **state)
{
    const CUstream handles[] = {NULL, LEGACY, PER_THREAD};
    unsigned long long ids[2][3];
    CUcontext of;
    open_gpus("2");
    for (int d = 0; d < 2; d++) {
        OK(cu.set_current(contexts[d]));
        for (int i = 0; i < 3; i++) {
            OK(cu.stream_get_context(handles[i], &of));
            assert_ptr_equal(of, contexts[d]);
            OK(get_id(handles[i], &ids[d][i]));
            OK(add(d, handles[i], words[d], 1));
            assert_int_equal(add(1 - d, handles[i], words[d], 1), CUDA_ERROR_INVALID_HANDLE);
        }
        OK(cu.context_synchronize());
        assert_int_equal(word(words[d]), 3);
        assert_int_equal(ids[d][0], ids[d][1]); /* both are the legacy stream */
        assert_int_not_equal(ids[d][1], ids[d][2]);
    }
    assert_int_not_equal(ids[0][1], ids[1][1]);
    assert_int_not_equal(ids[0][2], ids[1][2]);
}

static unsigned long long id_elsewhere;

static void *use_own_stream(void *unused)
{
    if (cu.set_current(contexts[0]) != CUDA_SUCCESS ||
        get_id(PER_THREAD, &id_elsewhere) != CUDA_SUCCESS ||
        cu.set_words_async(words[0] + 8, 5, 1, PER_THREAD) != CUDA_SUCCESS ||
        cu.stream_synchronize(PER_THREAD) != CUDA_SUCCESS)
        return NULL;
    return &cu;
}

/* One stops, and the other goes on. */
static void each_thread_has_a_stream_of_its_own(void **state)
{
    const uint32_t go = 1;
    unsigned long long id;
    pthread_t thread;
    void *ended;
    open_gpus("1");
    OK(get_id(PER_THREAD, &id));
    OK(cu.stream_wait_value(PER_THREAD, words[0], 1, CU_STREAM_WAIT_VALUE_EQ));
    assert_int_equal(pthread_create(&thread, NULL, use_own_stream, NULL), 0);
    assert_int_equal(pthread_join(thread, &ended), 0);
    assert_non_null(ended);
    assert_int_equal(word(words[0] + 8), 5);
    assert_int_not_equal(id, id_elsewhere);
    assert_int_equal(cu.stream_query(PER_THREAD), CUDA_ERROR_NOT_READY);
    fake.write((void *)(uintptr_t)words[0], &go, sizeof go);
    OK(cu.stream_synchronize(PER_THREAD));
}

/* ---- Captures ----------------------------------------------------------------------------- */

static CUstream asked;
static CUresult answer;

static void *query_it(void *unused)
{
    answer = cu.set_current(contexts[0]);
    if (answer == CUDA_SUCCESS)
        answer = cu.stream_query(asked);
    return NULL;
}

static void ask_elsewhere(CUstream stream)
{
    pthread_t thread;
    asked = stream;
    assert_int_equal(pthread_create(&thread, NULL, query_it, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void queries_end_global_captures_of_other_threads(void **state)
{
    CUstream capturing, other;
    CUgraph graph;
    open_gpus("1");
    OK(cu.stream_create(&capturing, CU_STREAM_NON_BLOCKING, 0));
    OK(cu.stream_create(&other, CU_STREAM_NON_BLOCKING, 0));
    OK(cu.begin_capture(capturing, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ask_elsewhere(other);
    assert_int_equal(answer, CUDA_SUCCESS);
    OK(cu.end_capture(capturing, &graph));
    OK(cu.graph_destroy(graph));
    OK(cu.begin_capture(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ask_elsewhere(other);
    assert_int_equal(answer, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(cu.end_capture(capturing, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void the_legacy_stream_is_refused_during_captures(void **state)
{
    CUstreamCaptureStatus status;
    CUstream capturing;
    CUgraph graph;
    open_gpus("1");
    OK(cu.stream_create(&capturing, CU_STREAM_DEFAULT, 0));
    OK(cu.begin_capture(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_int_equal(cu.stream_query(LEGACY), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    assert_int_equal(cu.stream_is_capturing(LEGACY, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    assert_int_equal(add(0, LEGACY, words[0], 1), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    assert_int_equal(cu.set_words_async(words[0], 1, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    OK(cu.stream_is_capturing(capturing, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cu.end_capture(capturing, &graph));
    OK(cu.graph_destroy(graph));
    OK(cu.stream_destroy(capturing));
    OK(cu.stream_create(&capturing, CU_STREAM_NON_BLOCKING, 0));
    OK(cu.begin_capture(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cu.stream_query(LEGACY)); /* which does not wait for such a stream */
    OK(cu.end_capture(capturing, &graph));
    OK(cu.graph_destroy(graph));
}

/* ---- Peers and other processes ------------------------------------------------------------ */

static void copy_between_devices(void)
{
    OK(cu.set_words_async(words[1], 7, 1, NULL));
    OK(cu.copy_async(words[0], words[1], 4, NULL));
    OK(cu.stream_synchronize(NULL));
    assert_int_equal(word(words[0]), 7);
}

static void peer_access_may_be_absent(void **state)
{
    int can = 1;
    setenv("FAKE_CUDA_PEERS", "0", 1);
    open_gpus("2");
    OK(cu.device_can_access_peer(&can, 0, 1));
    assert_int_equal(can, 0);
    assert_int_equal(cu.enable_peer_access(contexts[1], 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    copy_between_devices();
}

static void peer_access_may_be_reported_and_false(void **state)
{
    int can = 0;
    if (system("grep -qw ospke /proc/cpuinfo") != 0)
        skip();
    setenv("FAKE_CUDA_PEERS", "lies", 1);
    open_gpus("2");
    OK(cu.device_can_access_peer(&can, 0, 1));
    assert_int_equal(can, 1);
    OK(cu.enable_peer_access(contexts[1], 0));
    copy_between_devices();
    OK(add(0, NULL, words[0], 1));
    OK(cu.stream_synchronize(NULL));
    assert_int_equal(word(words[0]), 8);
    (void)add(0, NULL, words[1], 1);
    assert_int_equal(cu.stream_synchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void handles_for_other_processes_may_be_refused(void **state)
{
    CUipcMemHandle memory;
    CUipcEventHandle event_handle;
    CUevent event;
    setenv("FAKE_CUDA_IPC", "0", 1);
    open_gpus("1");
    OK(cu.event_create(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    assert_int_equal(cu.ipc_get_memory(&memory, words[0]), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(cu.ipc_get_event(&event_handle, event), CUDA_ERROR_NOT_SUPPORTED);
}

static void handles_of_other_processes_may_not_open(void **state)
{
    CUipcMemHandle memory;
    CUipcEventHandle event_handle;
    CUdeviceptr opened;
    CUevent event, opened_event;
    setenv("FAKE_CUDA_IPC", "open", 1);
    open_gpus("1");
    OK(cu.event_create(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cu.ipc_get_memory(&memory, words[0]));
    OK(cu.ipc_get_event(&event_handle, event));
    assert_int_equal(cu.ipc_open_memory(&opened, memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                     CUDA_ERROR_MAP_FAILED);
    assert_int_equal(cu.ipc_open_event(&opened_event, event_handle), CUDA_ERROR_MAP_FAILED);
}

/* ---- Memory of another process ------------------------------------------------------------- */

enum { OPENERS = 8, OPENINGS = 50 };

static pthread_barrier_t openers;
static CUipcMemHandle theirs;

/* Adds to a word of its own by a kernel, as soon as the memory is open in this thread. */
static void *open_and_add(void *device)
{
    const int d = (int)(intptr_t)device;
    bool right = cu.set_current(contexts[d]) == CUDA_SUCCESS;
    for (uint32_t i = 1; i <= OPENINGS && right; i++) {
        CUdeviceptr memory;
        pthread_barrier_wait(&openers);
        right = cu.ipc_open_memory(&memory, theirs, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) ==
                    CUDA_SUCCESS &&
                add(d, PER_THREAD, memory + 4 * (CUdeviceptr)d, 1) == CUDA_SUCCESS &&
                cu.stream_synchronize(PER_THREAD) == CUDA_SUCCESS &&
                word(memory + 4 * (CUdeviceptr)d) == i &&
                cu.ipc_close_memory(memory) == CUDA_SUCCESS;
    }
    return right ? &cu : NULL;
}

/* Each device's thread opens and closes the same memory. */
static void threads_open_the_same_memory(void **state)
{
    int ready[2];
    pthread_t threads[OPENERS];
    void *ended;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        open_gpus("1");
        OK(cu.ipc_get_memory(&theirs, words[0]));
        (void)!write(ready[1], &theirs, sizeof theirs);
        pause();
    }
    open_gpus("8");
    assert_int_equal(read(ready[0], &theirs, sizeof theirs), (int)sizeof theirs);
    pthread_barrier_init(&openers, NULL, OPENERS);
    for (intptr_t d = 0; d < OPENERS; d++)
        assert_int_equal(pthread_create(&threads[d], NULL, open_and_add, (void *)d), 0);
    for (int d = 0; d < OPENERS; d++) {
        assert_int_equal(pthread_join(threads[d], &ended), 0);
        assert_non_null(ended);
    }
    pthread_barrier_destroy(&openers);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {TEST(there_may_be_many_devices),
                                              TEST(devices_may_belong_to_mps),
                                              TEST(devices_usually_do_not_belong_to_mps),
                                              TEST(processes_take_turns),
                                              TEST(processes_run_at_once_under_mps),
                                              TEST(processes_share_the_places_of_a_device),
                                              TEST(default_streams_belong_to_the_current_context),
                                              TEST(each_thread_has_a_stream_of_its_own),
                                              TEST(queries_end_global_captures_of_other_threads),
                                              TEST(the_legacy_stream_is_refused_during_captures),
                                              TEST(peer_access_may_be_absent),
                                              TEST(peer_access_may_be_reported_and_false),
                                              TEST(handles_for_other_processes_may_be_refused),
                                              TEST(handles_of_other_processes_may_not_open),
                                              TEST(threads_open_the_same_memory)};
    cu = cuda_functions();
    fake = fake_cuda_functions();
    cuda_take("cuStreamGetId", &get_id);
    return run_one(tests, sizeof tests / sizeof *tests, argc, argv);
}
