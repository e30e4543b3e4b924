/* SPDX-License-Identifier: Apache-2.0
 * Lets calls of the driver fail, one in each life of a communicator of NCCL: start, calls, graph,
 * split and end. A step must give right values, or an error with a text that names the call, and
 * then all ranks end. Usage: test_nccl_faults MODE RANKS GPUS, as test_nccl_values. */
#include "nccl_team.h"

#include "draw.h"
#include "fake_cuda_table.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit_test.h"

enum { COUNT = 1000, REPLAYS = 3, FAULTS_MOST = 4096, ROWS = 1024, LOG_MOST = 1 << 20 };
enum { FIRST_LIVES = 4 /* in the short run */ };
enum { LIFE_SECONDS = 60, NTH_MOST = 40 /* of a function, in the long run */ };
enum { MEETINGS, CAPTURES, FAILURES, WRONG }; /* counters of the board */

static const char *mode;
static int ranks, gpus, teams;

typedef struct fault {
    char function[48];
    uint64_t nth; /* call of the library of it fails; 0: none does */
    int result, rank, blocking, captures;
} fault;

static const fault none = {.blocking = 1, .captures = 1};

/* Memory of all processes. */
static struct {
    fault faults[FAULTS_MOST];
    int count;
    fault current; /* of the life under way */
} * shared;
static int log_file; /* the standard error of all ranks */

typedef struct life {
    team t;
    fake_cuda_table fake;
    harness_board *board;
    const fault *fault;
    bool failed; /* with an error that the fault explains */
    ncclComm_t parts[TEAM_MOST];
    CUgraphExec execs[TEAM_MOST];
    int meetings;
} life;

/* ---- Steps. They return 0; otherwise the life ends. ----------------------------------------- */

/* An error must have a text. */
static int check(life *l, ncclComm_t comm, ncclResult_t result)
{
    const char *text = ncclGetLastError(comm); /* in any state */
    if (result == ncclSuccess || result == ncclInProgress)
        return 0;
    fprintf(stderr, "rank %d: %s: %s\n", l->t.of[0].rank, ncclGetErrorString(result), text);
    EXPECT((unsigned)result < ncclNumResults && strchr(text, ' ') != NULL, "result %d", result);
    l->failed = l->fault->nth > 0;
    return 1;
}

/* Makes a call for each rank `r` of the life `l`. */
#define STEP(l, call) \
    do { \
        ncclResult_t step_result; \
        TEAM_STEP(&(l)->t, step_result, call); \
        EXPECT(check(l, NULL, step_result) == 0, "%s", #call); \
    } while (0)

/* Waits until communicators are no longer in progress, and streams have passed their calls. A start
 * that a failed rank never joins is given up, as a launcher does. */
static int settle(life *l)
{
    const double since = harness_now();
    for (bool waits = true; waits; usleep(100)) {
        waits = false;
        for (int i = 0; i < 2 * l->t.count; i++) {
            const team_rank *r = &l->t.of[i / 2];
            const ncclComm_t comm = i % 2 == 0 ? r->comm : l->parts[i / 2];
            ncclResult_t state = ncclSuccess;
            if (comm != NULL)
                EXPECT_NCCL(ncclCommGetAsyncError(comm, &state));
            EXPECT(check(l, comm, state) == 0, "while waiting");
            waits |= state == ncclInProgress ||
                     team_cuda.stream_query(i % 2 == 0 ? r->stream : r->other) != CUDA_SUCCESS;
            if (state == ncclInProgress && i % 2 == 0 && harness_now() > since + 1 &&
                atomic_load(&l->board->counters[FAILURES]) > 0)
                return l->failed = true;
        }
        EXPECT(!waits || harness_now() < since + 10 * HARNESS_PROMPT, "a call hangs");
    }
    return 0;
}

/* ---- Values -------------------------------------------------------------------------------- */

static int element(int rank, int i)
{
    return (i + 3 * rank) % 11;
}

/* The value in dst after a call. */
typedef enum call { SUM, MESSAGE, EXCHANGE } call;

static int expected(call of, int rank, int i)
{
    int sum = 0;
    if (of == MESSAGE)
        return element((rank + ranks - 1) % ranks, i);
    if (of == EXCHANGE)
        return element(i / COUNT, rank * COUNT + i % COUNT);
    for (int r = 0; r < ranks; r++)
        sum += element(r, i);
    return sum;
}

static int fill(life *l)
{
    for (team_rank *r = l->t.of; r < l->t.of + l->t.count; r++) {
        int *host = (int *)(void *)r->host;
        for (int i = 0; i < ranks * COUNT; i++)
            host[i] = element(r->rank, i);
        EXPECT(team_write(r, (size_t)(ranks * COUNT) * sizeof *host) == 0, "rank %d", r->rank);
    }
    return 0;
}

/* Waits, and compares @p count elements of dst. */
static int compare(life *l, int count, call of)
{
    EXPECT(settle(l) == 0, "settle");
    for (team_rank *r = l->t.of; r < l->t.of + l->t.count; r++) {
        const int *host = (const int *)(const void *)r->host;
        EXPECT(team_read(r, r->dst, (size_t)count * sizeof *host) == 0, "rank %d", r->rank);
        for (int i = 0; i < count; i++)
            EXPECT(host[i] == expected(of, r->rank, i), "rank %d: element %d is %d", r->rank, i,
                   host[i]);
    }
    return 0;
}

/* ---- A life -------------------------------------------------------------------------------- */

static int start(life *l)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = l->fault->blocking;
    STEP(l,
         ncclCommInitRankConfig(&r->comm, ranks, *(ncclUniqueId *)&l->board->id, r->rank, &config));
    return settle(l);
}

#define TEAM_REST ((void *)(uintptr_t)(r->dst + (size_t)(ranks * COUNT) * sizeof(int)))

static int calls(life *l)
{
    EXPECT(fill(l) == 0, "fill");
    STEP(l, ncclAllReduce(TEAM_SRC, TEAM_DST, COUNT, ncclInt32, ncclSum, r->comm, r->stream));
    EXPECT(compare(l, COUNT, SUM) == 0, "values");
    STEP(l,
         (ncclGroupStart(),
          ncclSend(TEAM_SRC, COUNT, ncclInt32, (r->rank + 1) % ranks, r->comm, r->stream),
          ncclRecv(TEAM_DST, COUNT, ncclInt32, (r->rank + ranks - 1) % ranks, r->comm, r->stream),
          ncclGroupEnd()));
    EXPECT(compare(l, COUNT, MESSAGE) == 0, "values");
    STEP(l, ncclAlltoAll(TEAM_SRC, TEAM_DST, COUNT, ncclInt32, r->comm, r->other));
    STEP(l, ncclBroadcast(TEAM_REST, TEAM_REST, 10, ncclInt32, 0, r->comm, r->stream));
    return compare(l, ranks * COUNT, EXCHANGE);
}

static int capture(life *l)
{
    ncclResult_t result;
    for (team_rank *r = l->t.of; r < l->t.of + l->t.count; r++)
        EXPECT_CUDA(team_cuda.begin_capture(r->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    TEAM_STEP(&l->t, result,
              ncclAllReduce(TEAM_SRC, TEAM_DST, COUNT, ncclInt32, ncclSum, r->comm, r->stream));
    const int failed = check(l, NULL, result);
    for (int i = 0; i < l->t.count; i++) {
        CUgraph graph = NULL;
        team_use(&l->t.of[i]);
        const CUresult ended = team_cuda.end_capture(l->t.of[i].stream, &graph);
        if (failed == 0) {
            EXPECT_CUDA(ended);
            EXPECT_CUDA(team_cuda.graph_instantiate(&l->execs[i], graph, 0));
        }
        if (graph != NULL)
            EXPECT_CUDA(team_cuda.graph_destroy(graph));
    }
    return failed;
}

/* A rank that replays alone would wait until its abort, so ranks agree before. */
static int replay(life *l)
{
    _Atomic int *counters = l->board->counters;
    if (gpus < ranks || !l->fault->captures)
        return 0; /* calls of ranks that share a GPU cannot be captured */
    EXPECT(fill(l) == 0 && capture(l) == 0, "capture");
    for (atomic_fetch_add(&counters[CAPTURES], 1); atomic_load(&counters[CAPTURES]) < teams;
         usleep(100))
        if (atomic_load(&counters[FAILURES]) > 0)
            return l->failed = true;
    for (int k = 0; k < REPLAYS; k++) {
        EXPECT(fill(l) == 0, "fill");
        for (int i = 0; i < l->t.count; i++)
            EXPECT_CUDA(team_cuda.graph_launch(l->execs[i], l->t.of[i].stream));
        EXPECT(compare(l, COUNT, SUM) == 0, "values");
    }
    return 0;
}

static int split_and_finalize(life *l)
{
    EXPECT(fill(l) == 0, "fill");
    STEP(l, ncclCommSplit(r->comm, 1, r->rank, &l->parts[r - l->t.of], NULL));
    EXPECT(settle(l) == 0, "settle");
    STEP(l, ncclAllReduce(TEAM_SRC, TEAM_DST, COUNT, ncclInt32, ncclSum, l->parts[r - l->t.of],
                          r->other));
    EXPECT(compare(l, COUNT, SUM) == 0, "values");
    STEP(l, ncclCommFinalize(r->comm));
    return settle(l);
}

/* Ends the communicators that are there. */
static int end(life *l, bool aborts)
{
    for (int i = 0; i < l->t.count; i++) {
        team_rank *r = &l->t.of[i];
        team_use(r);
        if (l->execs[i] != NULL)
            EXPECT_CUDA(team_cuda.graph_exec_destroy(l->execs[i]));
        EXPECT_NCCL(aborts ? ncclCommAbort(l->parts[i]) : ncclCommDestroy(l->parts[i]));
        EXPECT_NCCL(aborts ? ncclCommAbort(r->comm) : ncclCommDestroy(r->comm));
        l->parts[i] = r->comm = NULL;
        l->execs[i] = NULL;
    }
    for (team_rank *r = l->t.of; r < l->t.of + l->t.count; r++) {
        EXPECT_CUDA(team_cuda.stream_synchronize(r->stream));
        EXPECT_CUDA(team_cuda.stream_synchronize(r->other));
    }
    return 0;
}

/* ---- Runs ---------------------------------------------------------------------------------- */

static const char *read_log(void)
{
    static char text[LOG_MOST];
    const ssize_t length = pread(log_file, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    return text;
}

/* If a rank has failed, an error or a warning names the call that failed. */
static int expect_name(const life *l)
{
    char name[sizeof l->fault->function]; /* without a version as in cuMemAlloc_v2 */
    snprintf(name, sizeof name, "%.*s", (int)strcspn(l->fault->function, "_"), l->fault->function);
    EXPECT(atomic_load(&l->board->counters[FAILURES]) == 0 || strstr(read_log(), name) != NULL,
           "no error names it");
    return 0;
}

static void meet(life *l)
{
    atomic_fetch_add(&l->board->counters[MEETINGS], 1);
    (void)harness_await(l->board, MEETINGS, ++l->meetings * teams);
}

/* All ranks live together. @return 0; 1 at all of them if something is wrong at one. */
static int live(life *l, const fault *f)
{
    _Atomic int *counters = l->board->counters;
    const int rank = l->t.of[0].rank;
    l->fault = f;
    l->failed = false;
    if (rank == 0) {
        shared->current = *f;
        counters[CAPTURES] = counters[FAILURES] = 0;
        (void)!ftruncate(log_file, 0);
        EXPECT_NCCL(ncclGetUniqueId((ncclUniqueId *)&l->board->id));
    }
    alarm(LIFE_SECONDS);
    if (rank == f->rank)
        l->fake.fail_nth_of(f->function, f->nth, f->result);
    meet(l);
    const bool fails = start(l) || calls(l) || replay(l) || split_and_finalize(l);
    atomic_fetch_add(&counters[FAILURES], fails);
    if (end(l, fails) != 0 || (fails && !l->failed))
        atomic_store(&counters[WRONG], 1);
    meet(l);
    if (rank == f->rank)
        l->fake.fail_nth(0, 0);
    if (rank == 0 && expect_name(l) != 0)
        atomic_store(&counters[WRONG], 1);
    meet(l);
    return atomic_load(&counters[WRONG]);
}

/* Draws calls of each function that the library calls in a life. */
static void draw_faults(fake_cuda_census_row *rows, int count)
{
    static const int results[] = {CUDA_ERROR_OUT_OF_MEMORY, 700 /* an illegal address */, 999};
    uint64_t draws = test_seed();
    for (int i = 0; i < count; i++) {
        for (int k = i + 1; k < count; k++) /* the same function in other threads */
            if (rows[k].of_library && strcmp(rows[k].function, rows[i].function) == 0) {
                rows[i].calls = (rows[i].of_library ? rows[i].calls : 0) + rows[k].calls;
                rows[i].of_library = true;
                rows[k].of_library = false;
            }
        const uint64_t calls = rows[i].of_library ? rows[i].calls : 0;
        const uint64_t most = test_is_long() ? NTH_MOST : 1;
        for (uint64_t n = 0; n < calls && n < most && shared->count < FAULTS_MOST; n++) {
            fault *f = &shared->faults[shared->count++];
            snprintf(f->function, sizeof f->function, "%s", rows[i].function);
            f->nth = calls <= most ? n + 1 : 1 + test_draw(&draws, (uint32_t)calls);
            f->result = results[test_draw(&draws, 3)];
            f->rank = (int)test_draw(&draws, strcmp(mode, "processes") == 0 ? (uint32_t)ranks : 1);
            f->blocking = teams == 1 && test_draw(&draws, 2) == 0;
            f->captures = (int)test_draw(&draws, 2);
        }
    }
}

/* Lives without a fault come first and last. */
static int many_lives(life *l)
{
    static fake_cuda_census_row rows[ROWS];
    const bool first = l->t.of[0].rank == 0;
    if (first)
        l->fake.census_begin();
    EXPECT(live(l, &none) == 0, "live");
    if (first)
        draw_faults(rows, l->fake.census_end(rows, ROWS));
    meet(l);
    for (int i = 0; i < shared->count; i++)
        EXPECT(live(l, &shared->faults[i]) == 0, "live");
    return live(l, &none);
}

/* @param arg  the fault in the first life of new processes; NULL: many lives. */
static int body(int rank, int count, harness_board *board, void *arg)
{
    static _Thread_local life l;
    const fault *f = arg;
    l = (life){.board = board, .fake = fake_cuda_functions()};
    EXPECT(team_open(&l.t, rank, ranks / teams, ranks, gpus) == 0, "rank %d", rank);
    EXPECT(f != NULL ? live(&l, f) == 0 : many_lives(&l) == 0, "rank %d", rank);
    if (f != NULL && strcmp(f->function, "cuInit") != 0) /* which a process calls only once */
        EXPECT(live(&l, &none) == 0, "rank %d", rank);
    return team_close(&l.t);
}

/* Shows the log of the last life if a rank has failed. */
static int run(const fault *f)
{
    const int terminal = dup(STDERR_FILENO);
    dup2(log_file, STDERR_FILENO);
    const int failed = harness_run_apart(strcmp(mode, "threads") == 0 ? "loop" : "shm", teams, body,
                                         (void *)(uintptr_t)f, team_start);
    dup2(terminal, STDERR_FILENO);
    close(terminal);
    const fault *at = f != NULL ? f : &shared->current;
    if (failed > 0)
        fprintf(stderr, "call %d of %s fails with %d in rank %d%s%s:\n%s\n", (int)at->nth,
                at->function, at->result, at->rank, at->blocking ? "" : ", nonblocking",
                f != NULL ? ", in new processes" : "", read_log());
    return failed;
}

static void a_call_of_the_driver_fails(void **state)
{
    uint64_t draws = test_seed();
    assert_int_equal(run(NULL), 0);
    const int most = test_is_long() ? shared->count : FIRST_LIVES;
    for (int i = 0; i < most; i++) {
        const int at = test_is_long() ? i : (int)test_draw(&draws, (uint32_t)shared->count);
        assert_int_equal(run(&shared->faults[at]), 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_call_of_the_driver_fails)};
    if (argc != 4)
        return 2;
    mode = argv[1];
    ranks = atoi(argv[2]);
    gpus = atoi(argv[3]);
    teams = strcmp(mode, "one") == 0 ? 1 : ranks;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    log_file = memfd_create("log", MFD_CLOEXEC);
    (void)fcntl(log_file, F_SETFL, O_APPEND);
    setenv("RING_DEBUG", "warn", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
