/* SPDX-License-Identifier: Apache-2.0
 * Calls that nobody waits for, and the thread that moves them. Usage: test_coll_progress TRANSPORT
 */
#include "draw.h"

#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

/* A call that ends by itself ends within milliseconds. */
#define PATIENCE 60.0

static bool ranks_are_threads(void)
{
    return cases_kind() == HARNESS_THREADS;
}

/* Until every rank has come here, without a call of libring. */
static void meet(harness_board *board, int counter, int ranks)
{
    for (board->counters[counter]++; board->counters[counter] < ranks;)
        usleep(1000);
}

/* ---- How a call ended ---------------------------------------------------------------------- */

typedef struct outcome {
    _Atomic int times, status;
    _Atomic pthread_t by;
} outcome;

static void note_end(void *context, ring_status status)
{
    outcome *o = context;
    atomic_store(&o->by, pthread_self());
    atomic_store(&o->status, (int)status);
    atomic_fetch_add(&o->times, 1);
}

static ring_call noted_by(outcome *o)
{
    ring_call call = RING_CALL_INIT;
    call.on_done = note_end;
    call.context = o;
    return call;
}

/* Without a call of libring. @return true if the call has ended, once. */
static bool ends_alone(const outcome *o)
{
    for (const double end = harness_now() + PATIENCE;
         atomic_load(&o->times) == 0 && harness_now() < end;)
        usleep(500);
    return atomic_load(&o->times) == 1;
}

/* ---- Its caller does something else -------------------------------------------------------- */

enum { LONG_COUNT = 1 << 20 };

static int post_and_sleep(ring_comm *comm, float *x, int rank, int ranks)
{
    outcome ended = {0};
    const ring_call call = noted_by(&ended);
    for (int i = 0; i < LONG_COUNT; i++)
        x[i] = (float)(rank + i % 5);
    EXPECT_OK(ring_all_reduce(x, x, LONG_COUNT, RING_FLOAT32, RING_SUM, comm, &call));
    EXPECT(ends_alone(&ended) && ended.status == RING_OK, "ended %d times, status %d",
           atomic_load(&ended.times), atomic_load(&ended.status));
    for (int i = 0; i < LONG_COUNT; i++)
        EXPECT(x[i] == (float)(ranks * (ranks - 1) / 2 + ranks * (i % 5)), "element %d is %g", i,
               (double)x[i]);
    return 0;
}

static int a_call_ends_while_its_caller_makes_none(int rank, int ranks, harness_board *board,
                                                   void *arg)
{
    ring_comm *comm;
    void *shared;
    float *plain = malloc(LONG_COUNT * sizeof *plain);
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_mem_alloc(&shared, LONG_COUNT * sizeof(float)));
    for (int i = 0; i < 3; i++) /* the first one opens the links */
        EXPECT(post_and_sleep(comm, i == 1 ? shared : plain, rank, ranks) == 0, "call %d", i);
    meet(board, 0, ranks);
    ring_comm_destroy(comm);
    EXPECT_OK(ring_mem_free(shared));
    free(plain);
    return 0;
}

/* ---- Many calls, threads and communicators ------------------------------------------------- */

enum { COMMS = 8, THREADS = 4, CALLS = 1000, CALLS_OF_ONE = CALLS / THREADS, MOST_COUNT = 3000 };

typedef struct part {
    ring_comm **comms; /* of this thread */
    int rank, ranks, index, failed;
    uint64_t drawn;
    int32_t *x[CALLS_OF_ONE];
    ring_work *works[CALLS_OF_ONE];
} part;

/* The same on all ranks. */
static size_t count_of(const part *p, int call)
{
    return 1 + (size_t)(call * 7919 + p->index * 31) % MOST_COUNT;
}

static int post_all(part *p)
{
    for (int i = 0; i < CALLS_OF_ONE; i++) {
        const size_t count = count_of(p, i);
        ring_call call = RING_CALL_INIT;
        call.work = &p->works[i];
        p->x[i] = malloc(count * sizeof **p->x);
        for (size_t k = 0; k < count; k++)
            p->x[i][k] = p->rank + (int32_t)k + i;
        EXPECT_OK(ring_all_reduce(p->x[i], p->x[i], count, RING_INT32, RING_SUM,
                                  p->comms[i % (COMMS / THREADS)], &call));
    }
    return 0;
}

static int end_one(part *p, int i)
{
    int done = 0;
    size_t index;
    switch (test_draw(&p->drawn, 3)) {
    case 0:
        EXPECT_OK(ring_wait(&p->works[i]));
        break;
    case 1:
        while (!done)
            EXPECT_OK(ring_test(&p->works[i], &done));
        break;
    default:
        EXPECT_OK(ring_wait_any(p->works, CALLS_OF_ONE, &index));
        break;
    }
    return 0;
}

static int end_all(part *p)
{
    for (int i = 0; i < CALLS_OF_ONE; i++)
        EXPECT(end_one(p, (int)test_draw(&p->drawn, CALLS_OF_ONE)) == 0, "turn %d", i);
    EXPECT_OK(ring_wait_all(p->works, CALLS_OF_ONE));
    for (int i = 0; i < CALLS_OF_ONE; i++)
        for (size_t k = 0; k < count_of(p, i); k++)
            EXPECT(p->x[i][k] == p->ranks * (p->ranks - 1) / 2 + p->ranks * ((int32_t)k + i),
                   "call %d, element %zu: %d", i, k, p->x[i][k]);
    for (int i = 0; i < CALLS_OF_ONE; i++)
        free(p->x[i]);
    return 0;
}

static void *take_part(void *context)
{
    part *p = context;
    p->failed = post_all(p) != 0 || end_all(p) != 0;
    return NULL;
}

static int a_thousand_calls_are_waited_for_in_any_order(int rank, int ranks, harness_board *board,
                                                        void *arg)
{
    ring_comm *comms[COMMS];
    pthread_t threads[THREADS];
    part *parts = calloc(THREADS, sizeof *parts);
    int failed = 0;
    EXPECT_OK(harness_join(rank, ranks, board, &comms[0]));
    for (int i = 1; i < COMMS; i++)
        EXPECT_OK(ring_comm_dup(comms[0], &comms[i]));
    for (int t = 0; t < THREADS; t++) {
        parts[t] = (part){.comms = &comms[t * (COMMS / THREADS)],
                          .rank = rank,
                          .ranks = ranks,
                          .index = t,
                          .drawn = test_seed() + (uint64_t)(rank * THREADS + t)};
        EXPECT(pthread_create(&threads[t], NULL, take_part, &parts[t]) == 0, "thread %d", t);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        failed += parts[t].failed;
    }
    free(parts);
    for (int i = COMMS - 1; i >= 0 && failed == 0; i--)
        ring_comm_destroy(comms[i]);
    return failed;
}

/* ---- The thread ---------------------------------------------------------------------------- */

static bool is_progress_thread(const char *task)
{
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return false;
    const bool read = fgets(name, sizeof name, f) != NULL;
    fclose(f);
    return read && strcmp(name, "ring-progress\n") == 0;
}

/* @param[out] task  its number, as text. @return how many there are in this process. */
static int find_progress_thread(char task[32])
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *d; (d = readdir(tasks)) != NULL;) {
        if (!is_progress_thread(d->d_name))
            continue;
        snprintf(task, 32, "%.31s", d->d_name);
        count++;
    }
    closedir(tasks);
    return count;
}

/* Threads made in a call of the progress thread's inherit its name: UCX's, the doubles'. */
static void skip_if_names_mislead(void)
{
    static const char *const without[] = {"loop", "shm", "tcp"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (strcmp(cases_transport(), without[i]) == 0)
            return;
    skip_because("threads of this transport take the progress thread's name");
}

static ring_status join_with(const char *const *settings, int rank, int ranks, ring_comm *first,
                             ring_comm **out)
{
    ring_config config = RING_CONFIG_INIT;
    ring_unique_id id = {{0}};
    config.settings = settings;
    ring_status status = rank == 0 ? ring_get_unique_id(&id) : RING_OK;
    if (status == RING_OK)
        status = ring_broadcast(&id, &id, sizeof id, RING_UINT8, 0, first, NULL);
    return status == RING_OK ? ring_comm_init_config(out, ranks, &id, rank, &config) : status;
}

/* The call goes on in calls of this rank; if ranks are threads, in those of the others, too. The
 * thread that moves it last tells its end. */
static int no_thread(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    ring_work *work;
    outcome ended = {0};
    float x = 1;
    char task[32];
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    ring_call call = noted_by(&ended);
    call.work = &work;
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, &call));
    EXPECT_OK(ring_wait(&work));
    EXPECT(ends_alone(&ended) && ended.status == RING_OK && x == (float)ranks, "%d ends, status %d",
           atomic_load(&ended.times), atomic_load(&ended.status));
    EXPECT(ranks_are_threads() || pthread_equal(atomic_load(&ended.by), pthread_self()),
           "another thread told it");
    EXPECT(find_progress_thread(task) == 0, "there is a progress thread: %s", task);
    meet(board, 1, ranks);
    ring_comm_destroy(comm);
    return 0;
}

static void without_progress_there_is_no_thread(void **state)
{
    skip_if_names_mislead();
    setenv("RING_PROGRESS", "none", 1);
    run(2, no_thread);
    unsetenv("RING_PROGRESS");
}

/* One for all communicators, none after them. */
static int one_thread(int rank, int ranks, harness_board *board, void *arg)
{
    static const char *const always[] = {"RING_PROGRESS=thread", NULL};
    static const char *const wrong[] = {"RING_PROGRESS=often", NULL};
    ring_config config = RING_CONFIG_INIT;
    ring_unique_id id = {{0}};
    ring_comm *comm, *second, *none;
    outcome ended[2] = {{0}};
    float x[2] = {1, 1};
    char task[32];
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(join_with(always, rank, ranks, comm, &second));
    config.settings = wrong;
    EXPECT(ring_comm_init_config(&none, 1, &id, 0, &config) == RING_ERR_CONFIG &&
               strstr(ring_last_error(NULL), "auto, thread or none") != NULL,
           "%s", ring_last_error(NULL));
    for (int i = 0; i < 2; i++) {
        const ring_call call = noted_by(&ended[i]);
        EXPECT_OK(ring_all_reduce(&x[i], &x[i], 1, RING_FLOAT32, RING_SUM, i == 0 ? comm : second,
                                  &call));
    }
    EXPECT(ends_alone(&ended[0]) && ends_alone(&ended[1]), "%d and %d ends",
           atomic_load(&ended[0].times), atomic_load(&ended[1].times));
    EXPECT(find_progress_thread(task) == 1, "%d threads", find_progress_thread(task));
    meet(board, 2, ranks);
    ring_comm_destroy(second);
    ring_comm_destroy(comm);
    meet(board, 3, ranks);
    EXPECT(find_progress_thread(task) == 0, "%d threads", find_progress_thread(task));
    return 0;
}

static void all_communicators_share_one_thread_which_ends_with_them(void **state)
{
    skip_if_names_mislead();
    run(2, one_thread);
}

/* @return how often the thread has gone to sleep, -1: it cannot be read. */
static long long sleeps_of(const char *task)
{
    char path[300], line[128];
    long long sleeps = -1;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return -1;
    while (sleeps < 0 && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "voluntary_ctxt_switches:", 24) == 0)
            sleeps = strtoll(line + 24, NULL, 10);
    fclose(f);
    return sleeps;
}

/* A thread that wakes now and then never has as many sleeps before a while as after it. */
static int idle_thread(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    outcome ended = {0};
    float x = 1;
    char task[32];
    bool rests = false;
    const ring_call call = noted_by(&ended);
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, &call));
    EXPECT(ends_alone(&ended), "%d ends", atomic_load(&ended.times));
    meet(board, 4, ranks);
    EXPECT(find_progress_thread(task) == 1, "%d threads", find_progress_thread(task));
    for (int i = 0; i < 40 && !rests; i++) {
        const long long before = sleeps_of(task);
        usleep(300000);
        rests = before >= 0 && sleeps_of(task) == before;
    }
    EXPECT(rests, "the idle thread woke in each of 40 looks");
    meet(board, 5, ranks);
    return 0;
}

static void an_idle_thread_does_not_wake(void **state)
{
    skip_if_names_mislead();
    run_joined(2, idle_thread);
}

/* ---- Naps ---------------------------------------------------------------------------------- */

static atomic_int naps, longest_nap; /* ms that the thread asks for */

/* Stands before libc's. */
__attribute__((visibility("default"))) int poll(struct pollfd *fds, nfds_t count, int ms)
{
    char name[32] = "";
    int (*real)(struct pollfd *, nfds_t, int);
    *(void **)&real = dlsym(RTLD_NEXT, "poll");
    if (ms > 0 && pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
        strcmp(name, "ring-progress") == 0) {
        atomic_fetch_add(&naps, 1);
        if (ms > atomic_load(&longest_nap))
            atomic_store(&longest_nap, ms);
    }
    return real(fds, count, ms);
}

/* While one call waits for an event and no other is made, the thread's sleeps double up to 50 ms.
 */
static int stand_behind_an_event(int rank, int ranks, harness_board *board, void *arg)
{
    enum { NAPS = 500, LONG_NAP = 25 };
    ring_comm *comm;
    ring_event *event;
    outcome ended = {0};
    float x = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_barrier(comm, NULL));
    EXPECT_OK(ring_event_create(&event));
    ring_call call = noted_by(&ended);
    call.after = event;
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, &call));
    meet(board, 6, ranks);
    atomic_store(&longest_nap, 0);
    atomic_store(&naps, 0);
    for (const double end = harness_now() + PATIENCE;
         atomic_load(&naps) < NAPS && atomic_load(&longest_nap) < LONG_NAP && harness_now() < end;)
        usleep(500);
    EXPECT(atomic_load(&longest_nap) >= LONG_NAP, "the longest of %d naps was for %d ms",
           atomic_load(&naps), atomic_load(&longest_nap));
    meet(board, 7, ranks);
    EXPECT_OK(ring_event_set(event, RING_OK));
    EXPECT(ends_alone(&ended) && ended.status == RING_OK && x == (float)ranks, "%d ends, status %d",
           atomic_load(&ended.times), atomic_load(&ended.status));
    ring_event_destroy(event);
    meet(board, 8, ranks);
    ring_comm_destroy(comm);
    return 0;
}

static void naps_grow_while_a_call_stands_behind_an_event(void **state)
{
    skip_if_names_mislead();
    run(2, stand_behind_an_event);
}

/* ---- A rank alone --------------------------------------------------------------------------- */

typedef struct setter {
    pthread_barrier_t together;
    ring_event *event; /* NULL: the end */
} setter;

static void *set_events(void *context)
{
    setter *s = context;
    for (;;) {
        pthread_barrier_wait(&s->together);
        if (s->event == NULL)
            return NULL;
        ring_event_set(s->event, RING_OK);
        pthread_barrier_wait(&s->together);
    }
}

/* The event is set while the caller makes other calls: one of the two threads starts the call that
 * waits for it. */
static int post_behind_an_event(ring_comm *comm, setter *s, float *x)
{
    outcome ended = {0};
    float y = 1;
    ring_call call = noted_by(&ended);
    EXPECT_OK(ring_event_create(&s->event));
    call.after = s->event;
    EXPECT_OK(ring_all_reduce(x, x, LONG_COUNT / 4, RING_FLOAT32, RING_SUM, comm, &call));
    pthread_barrier_wait(&s->together);
    for (int i = 0; i < 20; i++)
        EXPECT_OK(ring_all_reduce(&y, &y, 1, RING_FLOAT32, RING_SUM, comm, NULL));
    pthread_barrier_wait(&s->together);
    EXPECT(ends_alone(&ended) && ended.status == RING_OK, "%d ends, status %d",
           atomic_load(&ended.times), atomic_load(&ended.status));
    return 0;
}

static int an_event_starts_a_call_of_a_rank_alone(ring_comm *comm, int rank, int ranks,
                                                  harness_board *board)
{
    pthread_t thread;
    setter s = {.event = NULL};
    float *x = calloc(LONG_COUNT / 4, sizeof *x);
    int bad = x == NULL;
    pthread_barrier_init(&s.together, NULL, 2);
    EXPECT(pthread_create(&thread, NULL, set_events, &s) == 0, "no thread");
    for (int i = 0; i < 2000 && bad == 0; i++) {
        bad = post_behind_an_event(comm, &s, x);
        ring_event_destroy(s.event);
        s.event = NULL;
    }
    pthread_barrier_wait(&s.together);
    pthread_join(thread, NULL);
    free(x);
    return bad;
}

/* ---- Forks --------------------------------------------------------------------------------- */

static int child_overlaps(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    outcome ended = {0};
    int32_t x = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const ring_call call = noted_by(&ended);
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, &call));
    EXPECT(ends_alone(&ended) && x == ranks, "%d ends, %d", atomic_load(&ended.times), x);
    meet(board, 0, ranks);
    ring_comm_destroy(comm);
    return 0;
}

static int fork_beside_the_thread(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    outcome ended = {0};
    int32_t x = 1;
    int status = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const ring_call call = noted_by(&ended);
    EXPECT_OK(ring_recv(&x, 1, RING_INT32, 1 - rank, comm, &call)); /* it sleeps on it */
    const pid_t child = fork();
    if (child == 0) {
        setenv("RING_TRANSPORT", "loop", 1);
        _exit(harness_run(HARNESS_THREADS, 2, child_overlaps, NULL, NULL) != 0);
    }
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child: %d",
           status);
    const int32_t mine = 10 + rank;
    EXPECT_OK(ring_send(&mine, 1, RING_INT32, 1 - rank, comm, NULL));
    EXPECT(ends_alone(&ended) && x == 11 - rank, "%d ends, %d", atomic_load(&ended.times), x);
    meet(board, 6, ranks);
    ring_comm_destroy(comm);
    return 0;
}

static void a_forked_child_has_a_thread_of_its_own(void **state)
{
    if (ranks_are_threads())
        skip_because("ranks are threads, of which a forked child has only one");
#ifdef __SANITIZE_THREAD__
    skip_because("ThreadSanitizer starts no threads in a child of several");
#endif
#ifdef __SANITIZE_ADDRESS__
    skip_because("AddressSanitizer's allocator may be locked in the child of several threads");
#endif
    run(2, fork_beside_the_thread);
}

/* ---- Ends ---------------------------------------------------------------------------------- */

static int a_communicator_may_go_while_the_thread_moves_it(int rank, int ranks,
                                                           harness_board *board, void *arg)
{
    enum { COUNT = 4 << 20 };
    ring_comm *first, *comm;
    float *x = calloc(COUNT, sizeof *x);
    EXPECT_OK(harness_join(rank, ranks, board, &first));
    for (int i = 0; i < 10; i++) {
        outcome ended = {0};
        const ring_call call = noted_by(&ended);
        EXPECT_OK(ring_comm_dup(first, &comm));
        EXPECT_OK(ring_all_reduce(x, x, COUNT, RING_FLOAT32, RING_SUM, comm, &call));
        meet(board, 10 + i, ranks); /* who destroys first aborts all */
        usleep((useconds_t)(i * 300));
        ring_comm_destroy(comm);
        EXPECT(atomic_load(&ended.times) == 1, "%d ends", atomic_load(&ended.times));
        const int status = atomic_load(&ended.status);
        EXPECT(status == RING_OK || status == RING_ERR_ABORTED || status == RING_ERR_PEER,
               "status %d", status);
        EXPECT_OK(ring_barrier(first, NULL)); /* a peer may be in the middle of a pass over x */
    }
    ring_comm_destroy(first);
    free(x);
    return 0;
}

static int a_lost_peer_ends_calls_without_a_waiter(int rank, int ranks, harness_board *board,
                                                   void *arg)
{
    ring_comm *comm;
    outcome ended = {0};
    int32_t x = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, NULL));
    meet(board, 7, ranks);
    if (rank == ranks - 1) {
        while (board->counters[8] < ranks - 1)
            usleep(1000);
        if (!ranks_are_threads())
            _exit(0);
        ring_comm_destroy(comm);
        return 0;
    }
    const ring_call call = noted_by(&ended);
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, &call));
    board->counters[8]++;
    EXPECT(ends_alone(&ended) && ended.status != RING_OK, "%d ends, status %d",
           atomic_load(&ended.times), atomic_load(&ended.status));
    EXPECT(ring_comm_status(comm) != RING_OK, "the communicator is fine");
    ring_comm_destroy(comm);
    return 0;
}

static int a_deadline_passes_without_a_waiter(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    outcome ended = {0};
    int32_t x = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_call call = noted_by(&ended);
    call.timeout = 0.2;
    if (rank == 0) {
        EXPECT_OK(ring_recv(&x, 1, RING_INT32, 1, comm, &call));
        EXPECT(ends_alone(&ended) && ended.status == RING_ERR_TIMEOUT, "%d ends, status %d",
               atomic_load(&ended.times), atomic_load(&ended.status));
    }
    meet(board, 9, ranks);
    ring_comm_destroy(comm);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    cases_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        CASE_ALONE(a_call_ends_while_its_caller_makes_none, 2, 3),
        CASE_ALONE(a_thousand_calls_are_waited_for_in_any_order, 2),
        cmocka_unit_test(without_progress_there_is_no_thread),
        cmocka_unit_test(all_communicators_share_one_thread_which_ends_with_them),
        cmocka_unit_test(an_idle_thread_does_not_wake),
        CASE(an_event_starts_a_call_of_a_rank_alone, 1),
        cmocka_unit_test(naps_grow_while_a_call_stands_behind_an_event),
        cmocka_unit_test(a_forked_child_has_a_thread_of_its_own),
        CASE_ALONE(a_communicator_may_go_while_the_thread_moves_it, 2),
        CASE_ALONE(a_lost_peer_ends_calls_without_a_waiter, 3),
        CASE_ALONE(a_deadline_passes_without_a_waiter, 2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
