/* SPDX-License-Identifier: Apache-2.0
 * Ranks as threads or processes. */
#include "harness.h"

#include "pretended_host.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct harness_rank {
    int rank, ranks, result;
    harness_body body;
    void *arg;
    harness_board *board;
    pthread_t thread;
} harness_rank;

harness_kind harness_kind_of(const char *transport)
{
    /* The double of libibverbs has queue pairs of one process. */
    const bool threads = strcmp(transport, "loop") == 0 || strcmp(transport, "rma") == 0 ||
                         strcmp(transport, "verbs") == 0;
    return threads ? HARNESS_THREADS : HARNESS_PROCESSES;
}

uint64_t harness_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

void harness_use(const char *transport)
{
    const char *wire = getenv("RING_TEST_WIRE");
    char list[64];
    wire = wire != NULL ? wire : "tcp";
    snprintf(list, sizeof list, "%s,%s", transport, wire);
    const bool one = harness_number("RING_TEST_HOSTS", 1) == 1 || strcmp(transport, wire) == 0;
    setenv("RING_TRANSPORT", one ? transport : list, 1);
}

ring_status harness_join(int rank, int ranks, harness_board *board, ring_comm **comm)
{
    if (rank == 0) {
        const ring_status status = ring_get_unique_id(&board->id);
        atomic_store(&board->id_ready, status == RING_OK ? 1 : -1);
        if (status != RING_OK)
            return status;
    }
    while (atomic_load(&board->id_ready) == 0)
        sched_yield();
    return ring_comm_init(comm, ranks, &board->id, rank);
}

static int run_body(const harness_rank *r)
{
    pretended_host_set(r->rank % (int)harness_number("RING_TEST_HOSTS", 1));
    return r->body(r->rank, r->ranks, r->board, r->arg);
}

static void *thread_main(void *context)
{
    harness_rank *r = context;
    r->result = run_body(r);
    return NULL;
}

static int run_threads(harness_rank *all, int ranks)
{
    int failed = 0;
    for (int i = 0; i < ranks; i++)
        if (pthread_create(&all[i].thread, NULL, thread_main, &all[i]) != 0)
            abort();
    for (int i = 0; i < ranks; i++) {
        pthread_join(all[i].thread, NULL);
        failed += all[i].result != 0;
    }
    return failed;
}

static void process_main(harness_rank *r)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int result = run_body(r);
    fflush(NULL);
    exit(result != 0); /* not _exit: leak checkers report at exit */
}

static void start_processes(harness_rank *all, int ranks)
{
    fflush(NULL);
    for (int i = 0; i < ranks; i++) {
        const pid_t pid = fork();
        if (pid < 0)
            abort();
        if (pid == 0)
            process_main(&all[i]);
        all[i].board->pids[i] = pid;
    }
}

static int join_processes(const harness_rank *all, int ranks)
{
    int failed = 0;
    for (int i = 0; i < ranks; i++) {
        int status = 0;
        waitpid(all[i].board->pids[i], &status, 0);
        failed += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return failed;
}

static harness_board *board_new(void)
{
    void *memory = mmap(NULL, sizeof(harness_board), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    return memory;
}

void harness_board_free(harness_board *board)
{
    munmap(board, sizeof *board);
}

static void describe_ranks(harness_rank *all, int ranks, harness_body body, void *arg,
                           harness_board *board)
{
    for (int i = 0; i < ranks; i++)
        all[i] =
            (harness_rank){.rank = i, .ranks = ranks, .body = body, .arg = arg, .board = board};
}

int harness_run(harness_kind kind, int ranks, harness_body body, void *arg, harness_board **board)
{
    harness_board *shared = board_new();
    harness_rank all[HARNESS_MAX_RANKS];
    int failed;
    describe_ranks(all, ranks, body, arg, shared);
    if (kind == HARNESS_THREADS) {
        failed = run_threads(all, ranks);
    } else {
        start_processes(all, ranks);
        failed = join_processes(all, ranks);
    }
    if (board != NULL)
        *board = shared;
    else
        harness_board_free(shared);
    return failed;
}

typedef struct apart {
    int ranks;
    harness_body body;
    void *arg;
    int (*start)(void);
} apart;

static int as_threads(int rank, int ranks, harness_board *board, void *arg)
{
    const apart *a = arg;
    EXPECT(a->start == NULL || a->start() == 0, "not started");
    return harness_run(HARNESS_THREADS, a->ranks, a->body, a->arg, NULL);
}

int harness_run_apart(const char *transport, int ranks, harness_body body, void *arg,
                      int (*start)(void))
{
    apart threads = {ranks, body, arg, start};
    return harness_kind_of(transport) == HARNESS_THREADS
               ? harness_run(HARNESS_PROCESSES, 1, as_threads, &threads, NULL)
               : harness_run(HARNESS_PROCESSES, ranks, body, arg, NULL);
}

int harness_run_beside(int ranks, harness_body body, void *arg,
                       void (*beside)(harness_board *board, void *arg))
{
    harness_board *shared = board_new();
    harness_rank all[HARNESS_MAX_RANKS];
    describe_ranks(all, ranks, body, arg, shared);
    start_processes(all, ranks);
    beside(shared, arg);
    const int failed = join_processes(all, ranks);
    harness_board_free(shared);
    return failed;
}

double harness_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

uint64_t harness_messages_sent(const ring_comm *comm)
{
    ring_comm_info info = {.size = sizeof info};
    return ring_comm_get_info(comm, &info) == RING_OK ? info.messages_sent : UINT64_MAX;
}

bool harness_is_prompt(double since)
{
    return harness_now() - since < HARNESS_PROMPT;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double harness_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return count > 0 ? values[count / 2] : 0;
}

bool harness_await(const harness_board *board, int counter, int value)
{
    const double end = harness_now() + 10 * HARNESS_PROMPT;
    while (atomic_load(&board->counters[counter]) < value && harness_now() < end)
        usleep(500);
    return atomic_load(&board->counters[counter]) >= value;
}

bool harness_says(const char *text)
{
    return strstr(ring_last_error(NULL), text) != NULL;
}

int harness_expect_sum(ring_comm *comm, int mine, int want, int count)
{
    int32_t *x = calloc((size_t)count, sizeof *x);
    EXPECT(x != NULL, "no memory");
    for (int i = 0; i < count; i++)
        x[i] = mine * (i % 7 + 1);
    EXPECT_OK(ring_all_reduce(x, x, (size_t)count, RING_INT32, RING_SUM, comm, NULL));
    for (int i = 0; i < count; i++)
        EXPECT(x[i] == want * (i % 7 + 1), "element %d: %d", i, x[i]);
    free(x);
    return 0;
}

bool harness_is_timed(void)
{
    return getenv("RING_TEST_TIMED") != NULL;
}
