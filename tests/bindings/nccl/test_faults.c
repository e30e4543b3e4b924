/* SPDX-License-Identifier: Apache-2.0
 * Lets calls of the driver fail, one in each life of a communicator of NCCL: start, calls, graph,
 * split and end. A step must give right values, or an error with a text that names the call, and
 * then all ranks end. Usage: test_nccl_faults MODE RANKS GPUS, as test_nccl_values. */
#include "nccl_team.h"

#include "draw.h"
#include "fake_cuda_table.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit_test.h"

enum { COUNT = 1000, REPLAYS = 3, TEXT = 512, FAULTS_MOST = 4096, ROWS = 1024 };
enum { FIRST_LIVES = 4 /* in the short run */ };
enum { LIFE_SECONDS = 60, NTH_MOST = 40 /* of a function, in the long run */ };
enum { MEETINGS, CAPTURES, FAILURES, WRONG }; /* counters of the board */

static const char *mode;
static int ranks, gpus, teams;
static fake_cuda_table fake;

typedef struct fault {
    char function[48];
    uint64_t nth; /* call of the library of it fails; 0: none does */
    int result, rank, blocking, captures;
} fault;

/* What all processes share. */
static struct {
    char texts[TEAM_MOST][TEXT]; /* of the errors of a life */
    fault faults[FAULTS_MOST];
    int count;
} * shared;
static int log_file; /* the standard error of all ranks */

typedef struct life {
    team t;
    harness_board *board;
    const fault *fault;
    ncclComm_t parts[TEAM_MOST];
    int meetings;
} life;

/* ---- Steps --------------------------------------------------------------------------------- */

static bool is_wrong(life *l, const char *what)
{
    fprintf(stderr, "rank %d: %s\n", l->t.of[0].rank, what);
    atomic_store(&l->board->counters[WRONG], 1);
    return false;
}

/* @return true unless it is an error, which must have a text. */
static bool is_fine(life *l, ncclComm_t comm, ncclResult_t result)
{
    const char *text = ncclGetLastError(comm);
    if (result == ncclSuccess || result == ncclInProgress)
        return true;
    snprintf(shared->texts[l->t.of[0].rank], TEXT, "%s: %s", ncclGetErrorString(result), text);
    if ((unsigned)result >= ncclNumResults || strchr(text, ' ') == NULL)
        return is_wrong(l, "an error without a text");
    return l->fault->nth > 0 ? false : is_wrong(l, text);
}

/* The program's own calls of the driver do not fail. */
#define OWN(l, call) \
    do { \
        const CUresult own = (call); \
        if (own != CUDA_SUCCESS) { \
            fprintf(stderr, "%s: CUDA error %d\n", #call, own); \
            return is_wrong(l, "a call of the program fails"); \
        } \
    } while (0)

/* Makes a call for each rank `r` of the life `l`, in a group if there are several. */
#define STEP(l, call) \
    do { \
        const bool step_of_many = (l)->t.count > 1; \
        ncclResult_t step = step_of_many ? ncclGroupStart() : ncclSuccess; \
        for (team_rank *r = (l)->t.of; r < (l)->t.of + (l)->t.count; r++) { \
            team_use(r); \
            const ncclResult_t one = (call); \
            step = step == ncclSuccess ? one : step; \
        } \
        if (step_of_many) { \
            const ncclResult_t all = ncclGroupEnd(); \
            step = step == ncclSuccess || all != ncclSuccess ? all : ncclInternalError; \
        } \
        if (!is_fine(l, NULL, step)) \
            return false; \
    } while (0)

static bool is_alive(life *l, ncclComm_t comm, ncclResult_t *state)
{
    *state = ncclSuccess;
    if (comm == NULL)
        return true;
    if (ncclCommGetAsyncError(comm, state) != ncclSuccess)
        return is_wrong(l, "ncclCommGetAsyncError() fails");
    return is_fine(l, comm, *state);
}

/* Waits until communicators are no longer in progress, and streams have passed their calls. */
static bool settle(life *l)
{
    const double since = harness_now();
    for (int i = 0; i < l->t.count; i++) {
        const team_rank *r = &l->t.of[i];
        for (bool waits = true; waits; usleep(100)) {
            ncclResult_t whole, part;
            if (!is_alive(l, r->comm, &whole) || !is_alive(l, l->parts[i], &part))
                return false;
            waits = whole == ncclInProgress || part == ncclInProgress ||
                    team_cuda.stream_query(r->stream) != CUDA_SUCCESS ||
                    team_cuda.stream_query(r->other) != CUDA_SUCCESS;
            if (whole == ncclInProgress && harness_now() > since + 1 &&
                atomic_load(&l->board->counters[FAILURES]) > 0)
                return false; /* as a launcher ends starts that a rank never joins */
            if (waits && !harness_is_prompt(since))
                return is_wrong(l, "a call hangs");
        }
    }
    return true;
}

/* ---- Values -------------------------------------------------------------------------------- */

static int element(int rank, int i)
{
    return (i + 3 * rank) % 11;
}

static int of_all(int rank, int i)
{
    int sum = 0;
    for (int r = 0; r < ranks; r++)
        sum += element(r, i);
    return sum;
}

static int of_neighbour(int rank, int i)
{
    return element((rank + ranks - 1) % ranks, i);
}

static int of_exchange(int rank, int i)
{
    return element(i / COUNT, rank * COUNT + i % COUNT);
}

/* Gives each rank its elements in src, and others in dst. */
static bool fill(life *l)
{
    for (team_rank *r = l->t.of; r < l->t.of + l->t.count; r++) {
        int *host = (int *)(void *)r->host;
        team_use(r);
        for (int i = 0; i < ranks * COUNT; i++)
            host[i] = element(r->rank, i);
        OWN(l,
            team_cuda.copy_to_device_async(r->src, host, (size_t)(ranks * COUNT) * 4, r->stream));
        OWN(l, team_cuda.set_bytes_async(r->dst, 0x5a, TEAM_BYTES, r->stream));
        OWN(l, team_cuda.stream_synchronize(r->stream));
    }
    return true;
}

/* Waits, and compares @p count elements of src or dst. */
static bool compare(life *l, bool in_src, int count, int (*value)(int rank, int i))
{
    if (!settle(l))
        return false;
    for (team_rank *r = l->t.of; r < l->t.of + l->t.count; r++) {
        const int *host = (const int *)(const void *)r->host;
        team_use(r);
        OWN(l, team_cuda.copy_to_host_async(r->host, in_src ? r->src : r->dst, (size_t)count * 4,
                                            r->stream));
        OWN(l, team_cuda.stream_synchronize(r->stream));
        for (int i = 0; i < count; i++)
            if (host[i] != value(r->rank, i))
                return is_wrong(l, "a wrong value");
    }
    return true;
}

/* ---- A life -------------------------------------------------------------------------------- */

static bool start(life *l)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = l->fault->blocking;
    STEP(l,
         ncclCommInitRankConfig(&r->comm, ranks, *(ncclUniqueId *)&l->board->id, r->rank, &config));
    return settle(l);
}

#define TEAM_REST ((void *)(uintptr_t)(r->dst + (size_t)(ranks * COUNT) * 4))

static bool calls(life *l)
{
    if (!fill(l))
        return false;
    STEP(l, ncclAllReduce(TEAM_SRC, TEAM_DST, COUNT, ncclInt32, ncclSum, r->comm, r->stream));
    if (!compare(l, false, COUNT, of_all))
        return false;
    STEP(l,
         (ncclGroupStart(),
          ncclSend(TEAM_SRC, COUNT, ncclInt32, (r->rank + 1) % ranks, r->comm, r->stream),
          ncclRecv(TEAM_DST, COUNT, ncclInt32, (r->rank + ranks - 1) % ranks, r->comm, r->stream),
          ncclGroupEnd()));
    if (!compare(l, false, COUNT, of_neighbour))
        return false;
    STEP(l, ncclAlltoAll(TEAM_SRC, TEAM_DST, COUNT, ncclInt32, r->comm, r->other));
    STEP(l, ncclBroadcast(TEAM_REST, TEAM_REST, 10, ncclInt32, 0, r->comm, r->stream));
    return compare(l, false, ranks * COUNT, of_exchange);
}

static bool add_sum(life *l)
{
    STEP(l, ncclAllReduce(TEAM_SRC, TEAM_DST, COUNT, ncclInt32, ncclSum, r->comm, r->stream));
    return true;
}

static bool capture(life *l, CUgraphExec *execs)
{
    CUgraph graphs[TEAM_MOST] = {NULL};
    for (const team_rank *r = l->t.of; r < l->t.of + l->t.count; r++)
        OWN(l, team_cuda.begin_capture(r->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    const bool captured = add_sum(l);
    for (int i = 0; i < l->t.count; i++) {
        team_use(&l->t.of[i]);
        const CUresult ended = team_cuda.end_capture(l->t.of[i].stream, &graphs[i]);
        if (captured) {
            OWN(l, ended);
            OWN(l, team_cuda.graph_instantiate(&execs[i], graphs[i], 0));
        }
        if (graphs[i] != NULL)
            OWN(l, team_cuda.graph_destroy(graphs[i]));
    }
    return captured;
}

/* A rank that replays alone would wait until its abort, so ranks agree before. */
static bool all_have_captured(life *l)
{
    _Atomic int *counters = l->board->counters;
    for (atomic_fetch_add(&counters[CAPTURES], 1);; usleep(100)) {
        const int failures = atomic_load(&counters[FAILURES]);
        if (failures > 0 || atomic_load(&counters[CAPTURES]) == teams)
            return failures == 0;
    }
}

static bool replay(life *l, CUgraphExec *execs)
{
    if (!capture(l, execs) || !all_have_captured(l))
        return false;
    for (int k = 0; k < REPLAYS; k++) {
        if (!fill(l))
            return false;
        for (int i = 0; i < l->t.count; i++)
            OWN(l, team_cuda.graph_launch(execs[i], l->t.of[i].stream));
        if (!compare(l, false, COUNT, of_all))
            return false;
    }
    return true;
}

static bool replays(life *l)
{
    CUgraphExec execs[TEAM_MOST] = {NULL};
    if (gpus < ranks || !l->fault->captures)
        return true; /* calls of ranks that share a GPU cannot be captured */
    const bool replayed = fill(l) && replay(l, execs);
    for (int i = 0; i < l->t.count; i++)
        if (execs[i] != NULL)
            OWN(l, team_cuda.graph_exec_destroy(execs[i]));
    return replayed;
}

static bool part(life *l)
{
    if (!fill(l))
        return false;
    STEP(l, ncclCommSplit(r->comm, 1, r->rank, &l->parts[r - l->t.of], NULL));
    if (!settle(l))
        return false;
    STEP(l, ncclAllReduce(TEAM_SRC, TEAM_DST, COUNT, ncclInt32, ncclSum, l->parts[r - l->t.of],
                          r->other));
    return compare(l, false, COUNT, of_all);
}

/* Ends the communicators that are there. */
static bool end(life *l, bool fails, ncclComm_t *comm)
{
    const ncclResult_t result = fails ? ncclCommAbort(*comm) : ncclCommDestroy(*comm);
    *comm = NULL;
    return result == ncclSuccess || is_wrong(l, ncclGetLastError(NULL));
}

static bool flush(life *l)
{
    STEP(l, ncclCommFinalize(r->comm));
    return settle(l);
}

static bool end_all(life *l, bool fails)
{
    if (fails)
        atomic_fetch_add(&l->board->counters[FAILURES], 1);
    for (int i = 0; i < l->t.count; i++) {
        team_rank *r = &l->t.of[i];
        team_use(r);
        if (!end(l, fails, &l->parts[i]) || !end(l, fails, &r->comm))
            return false;
    }
    for (team_rank *r = l->t.of; r < l->t.of + l->t.count; r++) {
        OWN(l, team_cuda.stream_synchronize(r->stream));
        OWN(l, team_cuda.stream_synchronize(r->other));
    }
    return true;
}

/* ---- Runs ---------------------------------------------------------------------------------- */

static char under_way[256];

static void on_alarm(int number)
{
    (void)!write(STDERR_FILENO, under_way, strlen(under_way));
    _exit(1);
}

/* @return false if something is wrong at a rank. */
static bool meet(life *l)
{
    _Atomic int *counters = l->board->counters;
    atomic_fetch_add(&counters[MEETINGS], 1);
    for (const int all = ++l->meetings * teams; atomic_load(&counters[MEETINGS]) < all; usleep(100))
        if (atomic_load(&counters[WRONG]) != 0)
            return false;
    return true;
}

/* All ranks begin a life together. @return false if something is wrong. */
static bool live(life *l, const fault *f)
{
    const int rank = l->t.of[0].rank;
    const bool lets_fail = f->nth > 0 && rank == (strcmp(mode, "processes") == 0 ? f->rank : 0);
    l->fault = f;
    shared->texts[rank][0] = '\0';
    if (rank == 0) {
        snprintf(under_way, sizeof under_way, "it hangs: call %d of %s fails with %d, rank %d%s\n",
                 (int)f->nth, f->function, f->result, f->rank, f->blocking ? "" : ", nonblocking");
        l->board->counters[CAPTURES] = l->board->counters[FAILURES] = 0;
        if (ncclGetUniqueId((ncclUniqueId *)&l->board->id) != ncclSuccess)
            return is_wrong(l, ncclGetLastError(NULL));
    }
    alarm(LIFE_SECONDS);
    if (lets_fail)
        fake.fail_nth_of(f->function, f->nth, f->result);
    if (!meet(l))
        return false;
    const bool fine = start(l) && calls(l) && replays(l) && part(l) && flush(l);
    const bool ended = end_all(l, !fine) && meet(l);
    if (lets_fail)
        fake.fail_nth(0, 0);
    return ended && atomic_load(&l->board->counters[WRONG]) == 0;
}

static bool log_names(const char *name)
{
    static char text[1 << 20];
    const ssize_t length = pread(log_file, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    return strstr(text, name) != NULL;
}

/* If ranks have errors, one of them or the log names the call that failed. */
static bool is_named(const fault *f)
{
    bool errors = false;
    char name[sizeof f->function];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(f->function, "_"), f->function);
    for (int i = 0; i < ranks; i++) {
        errors |= shared->texts[i][0] != '\0';
        if (strstr(shared->texts[i], name) != NULL)
            return true;
    }
    return !errors || log_names(name);
}

static const char *describe(const fault *f)
{
    static _Thread_local char text[TEAM_MOST * TEXT + 256];
    int n = snprintf(text, sizeof text, "call %d of %s fails with %d in rank %d%s", (int)f->nth,
                     f->function, f->result, f->rank, f->blocking ? "" : ", nonblocking");
    for (int i = 0; i < ranks; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "\n  %d: %s", i, shared->texts[i]);
    return text;
}

/* Draws calls of each function that the library calls in a life. */
static void draw_faults(const fake_cuda_census_row *rows, int count)
{
    static const int results[] = {CUDA_ERROR_OUT_OF_MEMORY, 700 /* an illegal address */, 999};
    uint64_t draws = test_seed();
    int faults = 0;
    for (int i = 0; i < count; i++) {
        uint64_t calls = 0;
        bool seen = false;
        for (int k = 0; k < count; k++) {
            const bool same = rows[k].of_library && strcmp(rows[k].function, rows[i].function) == 0;
            calls += same ? rows[k].calls : 0;
            seen |= same && k < i;
        }
        const uint64_t most = !test_is_long() ? 1 : calls < NTH_MOST ? calls : NTH_MOST;
        for (uint64_t n = 0; rows[i].of_library && !seen && n < most && faults < FAULTS_MOST; n++) {
            fault *f = &shared->faults[faults++];
            snprintf(f->function, sizeof f->function, "%s", rows[i].function);
            f->nth = most == calls ? n + 1 : 1 + test_draw(&draws, (uint32_t)calls);
            f->result = results[test_draw(&draws, 3)];
            f->rank = (int)test_draw(&draws, (uint32_t)ranks);
            f->blocking = teams == 1 && test_draw(&draws, 2) == 0;
            f->captures = (int)test_draw(&draws, 2);
        }
    }
    shared->count = faults;
}

/* What a process asks the driver only once. */
static bool is_lasting(const fault *f)
{
    return strcmp(f->function, "cuInit") == 0 || strcmp(f->function, "cuDeviceGetAttribute") == 0;
}

/* The first life of processes, and one without a fault. */
static int first_life(life *l, const fault *f)
{
    static const fault none = {.blocking = 1, .captures = 1};
    EXPECT(live(l, f) && (l->t.of[0].rank > 0 || is_named(f)), "%s", describe(f));
    EXPECT(is_lasting(f) || live(l, &none), "after that, without a fault: %s", describe(f));
    return 0;
}

/* Lives without a fault come first and last. */
static int many_lives(life *l)
{
    static const fault none = {.blocking = 1, .captures = 1};
    static fake_cuda_census_row rows[ROWS];
    const bool first = l->t.of[0].rank == 0;
    if (first)
        fake.census_begin();
    EXPECT(meet(l) && live(l, &none), "without a fault");
    if (first)
        draw_faults(rows, fake.census_end(rows, ROWS));
    EXPECT(meet(l), "rank %d", l->t.of[0].rank);
    for (int i = 0; i < shared->count; i++) {
        const fault *f = &shared->faults[i];
        if (first)
            (void)!ftruncate(log_file, 0);
        EXPECT(meet(l) && live(l, f), "%s", describe(f));
        EXPECT(!first || is_named(f) || is_wrong(l, "no error names it"), "%s", describe(f));
        EXPECT(meet(l), "rank %d", l->t.of[0].rank);
    }
    EXPECT(live(l, &none), "without a fault, at last");
    return 0;
}

static void load_fake(void)
{
    fake = fake_cuda_functions();
}

static int body(int rank, int count, harness_board *board, void *arg)
{
    static _Thread_local life l;
    l = (life){.board = board};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_fake);
    signal(SIGALRM, on_alarm);
    EXPECT(team_open(&l.t, rank, ranks / teams, ranks, gpus) == 0, "rank %d", rank);
    EXPECT((arg != NULL ? first_life(&l, arg) : many_lives(&l)) == 0, "rank %d", rank);
    return team_close(&l.t);
}

/* Shows the log if a rank has failed. */
static int run(const fault *f)
{
    const int terminal = dup(STDERR_FILENO);
    fflush(NULL);
    (void)!ftruncate(log_file, 0);
    dup2(log_file, STDERR_FILENO);
    const int failed = harness_run_apart(strcmp(mode, "threads") == 0 ? "loop" : "shm", teams, body,
                                         (void *)(uintptr_t)f, team_start);
    dup2(terminal, STDERR_FILENO);
    close(terminal);
    (void)lseek(log_file, 0, SEEK_SET);
    char text[4096];
    for (ssize_t n; (failed > 0 || getenv("DBG")) && (n = read(log_file, text, sizeof text)) > 0;)
        (void)!write(STDERR_FILENO, text, (size_t)n);
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
    setenv("RING_DEBUG", "info", 0);
    setenv("FAKE_CUDA_DEADLINE", "30", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
