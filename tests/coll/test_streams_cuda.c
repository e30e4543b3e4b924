/* SPDX-License-Identifier: Apache-2.0
 * Tests calls on streams of a GPU that the host drives, over the double of NVIDIA's driver: each
 * process has its own GPU process, whose streams are late. Then calls of the driver fail, also
 * where GPUs run the calls. Usage: test_coll_streams_cuda TRANSPORT [failing [GPUS]] */
#include "harness.h"

#include "doubles/cuda/fake_cuda_table.h"
#include "doubles/cuda/sample_kernels.h"
#include "draw.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit_test.h"

enum { COUNT = 3001, RANKS_MOST = 3 };

static const char *transport_name;
static bool by_gpus; /* they run the calls                          */
static int gpus = 1; /* of which rank r has the r-th, round and round */
static cuda_table cu;
static fake_cuda_table fake;

/* ---- A rank and its GPU ------------------------------------------------------------------ */

/* Two streams, a vector on the GPU, and pinned memory from and to which it is copied. */
typedef struct place {
    CUcontext context;
    CUstream stream, beside;
    CUdeviceptr there;
    int32_t *in, *out;
    _Atomic uint32_t *go; /* of held() */
} place;

static void load_cuda(void)
{
    cu = cuda_functions();
    fake = fake_cuda_functions();
}

/* Its GPU becomes the thread's, after fork(), which has none of it. */
static int place_new(place *p, int rank)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const size_t bytes = COUNT * sizeof(int32_t);
    pthread_once(&once, load_cuda);
    EXPECT_CUDA(cu.init(0));
    EXPECT_CUDA(cu.primary_retain(&p->context, rank % gpus));
    EXPECT_CUDA(cu.set_current(p->context));
    EXPECT_CUDA(cu.stream_create(&p->stream, CU_STREAM_NON_BLOCKING, 0));
    EXPECT_CUDA(cu.stream_create(&p->beside, CU_STREAM_NON_BLOCKING, 0));
    EXPECT_CUDA(cu.mem_alloc(&p->there, bytes));
    EXPECT_CUDA(cu.host_alloc((void **)&p->in, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
    EXPECT_CUDA(cu.host_alloc((void **)&p->out, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
    EXPECT_CUDA(cu.host_alloc((void **)&p->go, sizeof *p->go, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(p->out, 0, bytes);
    atomic_init(p->go, 0);
    return 0;
}

static void place_free(place *p, int rank)
{
    cu.stream_destroy(p->stream);
    cu.stream_destroy(p->beside);
    cu.mem_free(p->there);
    cu.host_free(p->in);
    cu.host_free(p->out);
    cu.host_free((void *)p->go);
    cu.primary_release(rank % gpus);
}

static int32_t element(size_t i, int rank, int round)
{
    return (int32_t)(i * 3 + (size_t)(rank * 7919 + round * 31));
}

static void fill(const place *p, int rank)
{
    for (size_t i = 0; i < COUNT; i++)
        p->in[i] = element(i, rank, 0);
}

static int expect_sum(const int32_t *got, size_t count, int ranks, int round)
{
    for (size_t i = 0; i < count; i++) {
        int32_t want = 0;
        for (int r = 0; r < ranks; r++)
            want += element(i, r, round);
        EXPECT(got[i] == want, "element %zu of round %d: %d, not %d", i, round, (int)got[i],
               (int)want);
    }
    return 0;
}

static ring_call behind(const place *p)
{
    ring_call call = RING_CALL_INIT;
    call.stream = p->stream;
    return call;
}

static ring_status sum(const place *p, size_t count, ring_comm *comm, const ring_call *call)
{
    void *there = (void *)(uintptr_t)p->there; /* NOLINT(performance-no-int-to-ptr) */
    return ring_all_reduce(there, there, count, RING_INT32, RING_SUM, comm, call);
}

static uint64_t sent(ring_comm *comm)
{
    ring_comm_info info = {.size = sizeof info};
    return ring_comm_get_info(comm, &info) == RING_OK ? info.messages_sent : UINT64_MAX;
}

/* ---- Order -------------------------------------------------------------------------------- */

/* The stream waits for an event of another one, which waits for a word. */
static int hold(const place *p, CUevent *event)
{
    EXPECT_CUDA(cu.event_create(event, CU_EVENT_DISABLE_TIMING));
    EXPECT_CUDA(cu.stream_wait_value(p->beside, (uintptr_t)p->go, 1, CU_STREAM_WAIT_VALUE_GEQ));
    EXPECT_CUDA(cu.event_record(*event, p->beside));
    EXPECT_CUDA(cu.stream_wait_event(p->stream, *event, 0));
    return 0;
}

/* A call returns at once and sends nothing before the event. Later work on the stream, and work
 * that waits for a later event of the stream, sees its result. */
static int held(int rank, int ranks, harness_board *board, void *arg)
{
    const size_t bytes = COUNT * sizeof(int32_t);
    CUevent before, after;
    ring_comm *comm;
    place p;
    EXPECT(place_new(&p, rank) == 0, "no GPU");
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const ring_call call = behind(&p);
    fill(&p, rank);
    EXPECT_OK(ring_barrier(comm, NULL));
    const uint64_t first = sent(comm);
    EXPECT(hold(&p, &before) == 0, "holding a stream");
    EXPECT_CUDA(cu.copy_to_device_async(p.there, p.in, bytes, p.stream));
    EXPECT_OK(sum(&p, COUNT, comm, &call));
    EXPECT_OK(ring_barrier(comm, &call));
    EXPECT_CUDA(cu.event_create(&after, CU_EVENT_DISABLE_TIMING));
    EXPECT_CUDA(cu.event_record(after, p.stream));
    EXPECT_CUDA(cu.stream_wait_event(p.beside, after, 0));
    EXPECT_CUDA(cu.copy_to_host_async(p.out, p.there, bytes, p.beside));
    usleep(5000);
    EXPECT(sent(comm) == first, "%d messages", (int)(sent(comm) - first));
    EXPECT(cu.event_query(after) == CUDA_ERROR_NOT_READY && p.out[1] == 0, "it did not wait");
    atomic_store(p.go, 1);
    EXPECT_CUDA(cu.stream_synchronize(p.beside));
    EXPECT(expect_sum(p.out, COUNT, ranks, 0) == 0, "rank %d", rank);
    EXPECT(ranks == 1 || sent(comm) > first, "no messages");
    ring_comm_destroy(comm);
    cu.event_destroy(before);
    cu.event_destroy(after);
    place_free(&p, rank);
    return 0;
}

static void test_a_call_takes_its_place_in_a_stream(void **state)
{
    for (int ranks = 1; ranks <= RANKS_MOST; ranks++)
        assert_int_equal(harness_run_apart(transport_name, ranks, held, NULL, NULL), 0);
}

/* ---- Graphs ------------------------------------------------------------------------------- */

/* Processes that share a GPU: the host drives their calls, so a graph cannot keep them. The capture
 * goes on, and its graph has what the program itself asked for. */
static int captured(int rank, int ranks, harness_board *board, void *arg)
{
    CUgraph graph;
    CUgraphExec exec;
    ring_comm *comm;
    place p;
    EXPECT(place_new(&p, rank) == 0, "no GPU");
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const ring_call call = behind(&p);
    EXPECT_CUDA(cu.begin_capture(p.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(sum(&p, COUNT, comm, &call) == RING_ERR_UNSUPPORTED &&
               harness_says("a graph cannot keep such calls"),
           "%s", ring_last_error(NULL));
    EXPECT_CUDA(cu.set_words_async(p.there, 7, 1, p.stream));
    EXPECT_CUDA(cu.end_capture(p.stream, &graph));
    EXPECT_CUDA(cu.graph_instantiate(&exec, graph, 0));
    EXPECT_CUDA(cu.graph_launch(exec, p.stream));
    EXPECT_CUDA(cu.copy_to_host_async(p.out, p.there, sizeof p.out[0], p.stream));
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    EXPECT(p.out[0] == 7, "%d", p.out[0]);
    EXPECT_CUDA(cu.graph_exec_destroy(exec));
    EXPECT_CUDA(cu.graph_destroy(graph));
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_comm_destroy(comm);
    place_free(&p, rank);
    return 0;
}

static void test_a_graph_cannot_keep_calls_of_the_host(void **state)
{
    assert_int_equal(harness_run_apart(transport_name, 2, captured, NULL, NULL), 0);
}

/* ---- Ends --------------------------------------------------------------------------------- */

typedef enum ending { BREAK, ABORT, DEADLINE, DEATH, ENDINGS } ending;

/* The GPU has an error, as after a kernel that failed. */
static int break_gpu(void)
{
    CUmodule module;
    CUfunction trap;
    CUstream stream;
    void *parameters[] = {&(sample_trap){0}};
    EXPECT_CUDA(cu.module_load(&module, "RINGEMU"));
    EXPECT_CUDA(cu.module_get_function(&trap, module, "sample_trap"));
    EXPECT_CUDA(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING, 0));
    EXPECT_CUDA(cu.launch(trap, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    return 0;
}

static int end_it(ring_comm *comm, ending how)
{
    if (how == BREAK)
        return break_gpu();
    if (how == ABORT)
        EXPECT_OK(ring_comm_abort(comm, "to see the streams go on"));
    if (how == DEATH)
        raise(SIGKILL);
    return 0;
}

static ring_status status_of(ending how)
{
    static const ring_status of[] = {RING_ERR_SYSTEM, RING_ERR_ABORTED, RING_ERR_TIMEOUT,
                                     RING_ERR_PEER};
    return of[how];
}

/* A call that waits for rank 1, or, where a GPU breaks, for the streams of all. */
static int wait_for_end(const place *p, int rank, ring_comm *comm, ending how, CUevent *event)
{
    ring_call call = behind(p);
    call.timeout = how == DEADLINE ? 0.1 : 0;
    if (how == BREAK)
        EXPECT(hold(p, event) == 0, "holding a stream");
    if (rank == 0 || how == BREAK)
        EXPECT_OK(sum(p, COUNT, comm, &call));
    return 0;
}

/* All ranks learn how it ends, and streams go on. */
static int ended(int rank, int ranks, harness_board *board, void *arg)
{
    const ending how = *(const ending *)arg;
    const bool shared = harness_kind_of(transport_name) == HARNESS_THREADS;
    ring_status status = RING_OK;
    CUevent event;
    ring_comm *comm;
    place p;
    EXPECT(place_new(&p, rank) == 0, "no GPU");
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(wait_for_end(&p, rank, comm, how, &event) == 0, "a call");
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    if (rank == 1)
        EXPECT(end_it(comm, how) == 0, "ending it");
    for (const double began = harness_now(); status == RING_OK && harness_is_prompt(began);)
        status = ring_comm_status(comm);
    EXPECT(status == status_of(how), "%s", ring_status_string(status));
    const char *text = ring_last_error(comm);
    EXPECT(how != BREAK || strstr(text, "CUDA device 0 failed: ") != NULL, "%s", text);
    EXPECT(ring_barrier(comm, NULL) == status_of(how), "%s", ring_last_error(NULL));
    atomic_store(p.go, 1);
    const bool lost = cu.stream_synchronize(p.stream) != CUDA_SUCCESS;
    EXPECT(lost == (how == BREAK && (shared || rank == 1)), "the stream");
    ring_comm_destroy(comm);
    place_free(&p, rank);
    return 0;
}

static void test_an_end_lets_streams_go(void **state)
{
    const bool threads = harness_kind_of(transport_name) == HARNESS_THREADS;
    for (ending how = BREAK; how < ENDINGS; how++)
        if (!threads || how != DEATH)
            assert_int_equal(harness_run_apart(transport_name, 2, ended, &how, NULL),
                             how == DEATH ? 1 : 0);
}

/* ---- Calls of the driver that fail -------------------------------------------------------- */

enum { NTH_MOST = 120, NTH_MOST_BY_GPUS = 3000 };

/* A life of a communicator takes up to seconds, so the short form fails one call in seven. */
static uint64_t stride(void)
{
    return test_is_long() ? 1 : 7;
}

/* Of two ranks that are threads: their GPU, and how their calls ended. */
typedef struct attempt {
    place places[2];
    ring_status status[2];
    char text[2][1024];
    uint64_t nth;
} attempt;

/* All calls of the driver from here on are the library's. */
static int call_once(int rank, int ranks, harness_board *board, void *arg)
{
    attempt *a = arg;
    ring_comm *comm = NULL;
    ring_work *work = NULL;
    ring_call call = behind(&a->places[rank]);
    call.work = &work;
    EXPECT_CUDA(cu.set_current(a->places[rank].context));
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    if (rank == 0)
        fake.fail_nth(a->nth, CUDA_ERROR_OUT_OF_MEMORY);
    atomic_fetch_add(&board->counters[1], 1);
    EXPECT(harness_await(board, 1, ranks), "a rank is late");
    a->status[rank] = harness_join(rank, ranks, board, &comm);
    if (a->status[rank] == RING_OK)
        a->status[rank] = sum(&a->places[rank], COUNT, comm, &call);
    if (a->status[rank] == RING_OK)
        a->status[rank] = ring_wait(&work);
    if (a->status[rank] != RING_OK)
        snprintf(a->text[rank], sizeof a->text[rank], "%s", ring_last_error(NULL));
    ring_comm_destroy(comm);
    return 0;
}

/* Lines of the log that the library writes meanwhile. @return ranks that failed. */
static int log_calls(attempt *a, char *log, size_t room)
{
    const int file = memfd_create("log", MFD_CLOEXEC), terminal = dup(STDERR_FILENO);
    dup2(file, STDERR_FILENO);
    const int failed = harness_run(HARNESS_THREADS, 2, call_once, a, NULL);
    dup2(terminal, STDERR_FILENO);
    const ssize_t length = pread(file, log, room - 1, 0);
    log[length > 0 ? length : 0] = '\0';
    close(file);
    close(terminal);
    if (failed != 0)
        fputs(log, stderr);
    return failed;
}

/* Of such a name errors leave out the version. */
static bool names(const char *text, const char *function)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(function, "_"), function);
    return strstr(text, name) != NULL;
}

static int expect_end(const attempt *a, int rank, const char *failed, const char *log)
{
    int32_t got[COUNT];
    const int n = (int)a->nth;
    EXPECT_CUDA(cu.stream_synchronize(a->places[rank].stream));
    if (a->status[rank] == RING_OK) {
        fake.read(got, (const void *)(uintptr_t)a->places[rank].there, sizeof got);
        EXPECT(expect_sum(got, COUNT, 2, 0) == 0, "call %d, rank %d", n, rank);
        return 0;
    }
    EXPECT(failed != NULL, "call %d: %s", n, a->text[rank]);
    EXPECT(names(a->text[0], failed) || names(a->text[1], failed) || names(log, failed),
           "call %d, %s: %s\n%s\n%s", n, failed, a->text[0], a->text[1], log);
    return 0;
}

/* One call of the driver fails while a communicator is made, used and ended: the error names it, no
 * stream stays stopped, and a call that ends well is right. */
static int nth_fails(int rank, int ranks, harness_board *board, void *arg)
{
    static char log[65536];
    static attempt a;
    a.nth = *(const uint64_t *)arg;
    for (int r = 0; r < 2; r++) {
        EXPECT(place_new(&a.places[r], r) == 0, "no GPU");
        fill(&a.places[r], r);
        fake.write((void *)(uintptr_t)a.places[r].there, a.places[r].in, COUNT * sizeof(int32_t));
    }
    EXPECT(log_calls(&a, log, sizeof log) == 0, "call %d", (int)a.nth);
    const char *failed = fake.last_failed();
    fake.fail_nth(0, 0);
    board->counters[0] = failed != NULL;
    board->counters[1] = a.status[0] != RING_OK;
    for (int r = 0; r < 2; r++) {
        EXPECT(expect_end(&a, r, failed, log) == 0, "rank %d", r);
        place_free(&a.places[r], r);
    }
    return 0;
}

static void test_the_nth_call_of_the_driver_fails(void **state)
{
    int errors = 0, failed = 1;
    const uint64_t most = by_gpus ? NTH_MOST_BY_GPUS : NTH_MOST;
    for (uint64_t n = 1 + test_seed() % stride(); n <= most && failed != 0; n += stride()) {
        harness_board *board;
        if (harness_run(HARNESS_PROCESSES, 1, nth_fails, &n, &board) != 0)
            fail_msg("call %d of the driver", (int)n);
        failed = board->counters[0];
        errors += board->counters[1];
        harness_board_free(board);
    }
#ifdef __SANITIZE_THREAD__
    const bool counts = test_is_long(); /* a sample under load once held no such failure */
#else
    const bool counts = true;
#endif
    if (counts)
        assert_in_range(errors, (by_gpus ? 7 : 20) / stride(), most);
    assert_true(!by_gpus || failed == 0); /* the last calls of the driver have been reached */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_takes_its_place_in_a_stream),
        cmocka_unit_test(test_a_graph_cannot_keep_calls_of_the_host),
        cmocka_unit_test(test_an_end_lets_streams_go),
    };
    const struct CMUnitTest failing[] = {cmocka_unit_test(test_the_nth_call_of_the_driver_fails)};
    transport_name = argc > 1 ? argv[1] : "loop";
    setenv("RING_TRANSPORT", transport_name, 1);
    setenv("RING_TIMEOUT", "60", 1);
    by_gpus = argc > 3;
    if (by_gpus)
        gpus = atoi(argv[3]);
    setenv("RING_DEVICE_PROGRAMS", by_gpus ? "1" : "0", 1);
    return argc > 2 ? cmocka_run_group_tests(failing, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
