/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests that a repeated call takes nothing from the system: it allocates no memory, makes no system
 * call, and its plan is not lowered again, whatever its buffers. Two ranks on two cores make every
 * collective over shm, in batches, and count.
 *
 * Allocations and yields: this program's malloc and sched_yield count, and call those of glibc.
 * Only the thread that makes the calls is judged. Other system calls: the thread that makes the
 * calls has a seccomp filter that reports each of them to the rank's main thread, which counts it
 * and lets it continue. A rank whose peer is late yields, then sleeps, and is woken by system calls
 * too; and messages that a late peer has not read may touch a page of a link's memory for the first
 * time. A busy machine makes peers late. Therefore the quietest batch must have none of these, and
 * yields are only reported. Anything else is an error in every batch.
 */
#include "harness.h"

#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIP = 77, RANKS = 2, WARMUP = 512, CALLS = 10, BATCHES = 400, LOOK_MS = 5 };
enum { MOST_FLOATS = 32 * 1024 };

/* ---- Allocations ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

/* The tree's symbols are hidden; these must be what the library finds. */
#define INSTEAD_OF_GLIBC __attribute__((visibility("default")))

/* Of the thread: others, such as the progress thread, grow what they need in their own time. */
static _Thread_local int allocations;

INSTEAD_OF_GLIBC void *malloc(size_t bytes)
{
    allocations++;
    return __libc_malloc(bytes);
}

INSTEAD_OF_GLIBC void *calloc(size_t count, size_t bytes)
{
    allocations++;
    return __libc_calloc(count, bytes);
}

INSTEAD_OF_GLIBC void *realloc(void *old, size_t bytes)
{
    allocations++;
    return __libc_realloc(old, bytes);
}

INSTEAD_OF_GLIBC void *aligned_alloc(size_t alignment, size_t bytes)
{
    allocations++;
    return __libc_memalign(alignment, bytes);
}

INSTEAD_OF_GLIBC int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    allocations++;
    *out = __libc_memalign(alignment, bytes);
    return *out ? 0 : ENOMEM;
}

/* ---- System calls ---- */

static atomic_int yields;

INSTEAD_OF_GLIBC int sched_yield(void)
{
    atomic_fetch_add(&yields, 1);
    return (int)syscall(SYS_sched_yield);
}

typedef struct counts {
    int allocations, yields, sleeps, others;
    int other; /* number of the latest of the others */
} counts;

/* The batch that is counted now, NULL between batches. Its thread waits while the main one
 * counts. */
static _Atomic(counts *) current;

/* Calls by which a thread sleeps, is woken and looks why, and by which a link takes memory. */
static bool is_of_late_peer(int number)
{
    static const int numbers[] = {
        SYS_futex,   SYS_membarrier, SYS_clock_nanosleep, SYS_ppoll, SYS_epoll_pwait,
        SYS_read,    SYS_recvfrom,   SYS_recvmsg,         SYS_write, SYS_sendto,
        SYS_sendmsg, SYS_fallocate,  SYS_madvise,
#ifdef SYS_poll
        SYS_poll,    SYS_epoll_wait,
#endif
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (number == numbers[i])
            return true;
    return false;
}

static void count_call(int number)
{
    counts *batch = atomic_load(&current);
    if (!batch)
        return;
    if (is_of_late_peer(number)) {
        batch->sleeps++;
    } else {
        batch->others++;
        batch->other = number;
    }
}

/* Reports the calling thread's system calls from now on. @return the descriptor that reports them,
 * or -1 if the kernel does not support it. With a vDSO, reading the clock is not a system call;
 * without one it cannot be avoided. */
static int tell_calls(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_yield, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
    };
    const struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &program);
}

/* Whether the kernel has such filters, tried in a process that ends with it. */
static bool calls_can_be_told(void)
{
    int status = -1;
    const pid_t pid = fork();
    if (pid == 0)
        _exit(tell_calls() < 0);
    waitpid(pid, &status, 0);
    return status == 0;
}

static void answer_call(int listener)
{
    struct seccomp_notif call = {0};
    struct pollfd told = {.fd = listener, .events = POLLIN};
    if (poll(&told, 1, LOOK_MS) != 1 || ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
        return;
    count_call(call.data.nr);
    struct seccomp_notif_resp go_on = {.id = call.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &go_on);
}

/* ---- The calls ---- */

typedef struct rank_state {
    int rank, failed;
    ring_comm *comm;
    float *buffer;       /* RANKS blocks */
    atomic_int listener; /* reports system calls; 0: not yet, -1: unavailable */
} rank_state;

static ring_status all_reduce(const rank_state *r, size_t count)
{
    return ring_all_reduce(r->buffer, r->buffer, count, RING_FLOAT32, RING_MAX, r->comm, NULL);
}

static ring_status reduce_scatter(const rank_state *r, size_t count)
{
    return ring_reduce_scatter(r->buffer, r->buffer + (size_t)r->rank * count, count, RING_FLOAT32,
                               RING_MAX, r->comm, NULL);
}

static ring_status all_gather(const rank_state *r, size_t count)
{
    return ring_all_gather(r->buffer + (size_t)r->rank * count, r->buffer, count, RING_FLOAT32,
                           r->comm, NULL);
}

/* The second half of the buffer is the other one; blocks of two lengths, with a gap. */
static ring_status all_to_all_v(const rank_state *r, size_t count)
{
    const size_t lengths[2][2] = {{count / 4, count / 8}, {count / 8, count / 4}};
    const size_t displs[RANKS] = {count / 4 + 1, 0};
    return ring_all_to_all_v(r->buffer, lengths[r->rank], NULL, r->buffer + count / 2,
                             lengths[r->rank], displs, RING_FLOAT32, r->comm, NULL);
}

/* The same by addresses, with the sides' halves exchanged. */
static ring_status all_to_all_list(const rank_state *r, size_t count)
{
    const size_t lengths[2][2] = {{count / 4, count / 8}, {count / 8, count / 4}};
    float *other = r->buffer + count / 2;
    const void *srcs[RANKS] = {other + count / 4, other};
    void *dsts[RANKS] = {r->buffer, r->buffer + count / 4};
    return ring_all_to_all_list(srcs, lengths[r->rank], dsts, lengths[r->rank], RING_FLOAT32,
                                r->comm, NULL);
}

static ring_status broadcast(const rank_state *r, size_t count)
{
    return ring_broadcast(r->buffer, r->buffer, count, RING_FLOAT32, 0, r->comm, NULL);
}

static ring_status reduce(const rank_state *r, size_t count)
{
    return ring_reduce(r->buffer, r->buffer, count, RING_FLOAT32, RING_MAX, 0, r->comm, NULL);
}

static ring_status premul_sum(const rank_state *r, size_t count)
{
    const double half = 0.5;
    ring_call call = RING_CALL_INIT;
    call.scale = &half;
    return ring_reduce_scatter(r->buffer, r->buffer + (size_t)r->rank * count, count, RING_FLOAT32,
                               RING_PREMUL_SUM, r->comm, &call);
}

static ring_status barrier(const rank_state *r, size_t count)
{
    return ring_barrier(r->comm, NULL);
}

static ring_status send_recv(const rank_state *r, size_t count)
{
    const ring_status first = r->rank == 0
                                  ? ring_send(r->buffer, count, RING_FLOAT32, 1, r->comm, NULL)
                                  : ring_recv(r->buffer, count, RING_FLOAT32, 0, r->comm, NULL);
    if (first != RING_OK)
        return first;
    return r->rank == 1 ? ring_send(r->buffer, count, RING_FLOAT32, 0, r->comm, NULL)
                        : ring_recv(r->buffer, count, RING_FLOAT32, 1, r->comm, NULL);
}

/* From any source one way, from a known one back. */
static ring_status tagged(const rank_state *r, size_t count)
{
    ring_call call = RING_CALL_INIT;
    call.tagged = 1;
    call.tag = 3;
    const ring_status first = r->rank == 0
                                  ? ring_send(r->buffer, count, RING_FLOAT32, 1, r->comm, &call)
                                  : ring_recv(r->buffer, count, RING_FLOAT32, RING_ANY_SOURCE,
                                              r->comm, &call);
    if (first != RING_OK)
        return first;
    return r->rank == 1 ? ring_send(r->buffer, count, RING_FLOAT32, 0, r->comm, &call)
                        : ring_recv(r->buffer, count, RING_FLOAT32, 1, r->comm, &call);
}

static const struct {
    const char *name;
    ring_status (*call)(const rank_state *r, size_t count);
} collectives[] = {
    {"all_reduce", all_reduce}, {"reduce_scatter", reduce_scatter},
    {"all_gather", all_gather}, {"broadcast", broadcast},
    {"reduce", reduce},         {"barrier", barrier},
    {"send_recv", send_recv},   {"all_to_all_v", all_to_all_v},
    {"premul_sum", premul_sum}, {"all_to_all_list", all_to_all_list},
    {"tagged", tagged},
};

enum { COLLECTIVES = sizeof collectives / sizeof *collectives };

static const size_t sizes[] = {2, 1024, MOST_FLOATS}; /* floats: a line, a page, many pages */

enum { SIZES = sizeof sizes / sizeof *sizes };

static int make_calls(const rank_state *r, int which, size_t count, int calls)
{
    for (int i = 0; i < calls; i++)
        EXPECT_OK(collectives[which].call(r, count));
    return 0;
}

/* ---- Counts ---- */

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Of events that a late peer causes, the quietest batch counts; of all others, every batch. */
static void add_batch(counts *found, const counts *batch)
{
    found->yields = least(found->yields, batch->yields);
    found->sleeps = least(found->sleeps, batch->sleeps);
    found->allocations += batch->allocations;
    found->others += batch->others;
    found->other = batch->others > 0 ? batch->other : found->other;
}

static int judge(const rank_state *r, int which, size_t count, const counts *found)
{
    const char *name = collectives[which].name;
    printf("rank %d: %-14s %6zu floats: %d allocations, %d system calls in %d calls; in the "
           "quietest %d: %d of a late peer, %d yields\n",
           r->rank, name, count, found->allocations, found->others, BATCHES * CALLS, CALLS,
           found->sleeps, found->yields);
    EXPECT(found->allocations == 0, "%s, %zu floats", name, count);
    EXPECT(found->others == 0, "%s, %zu floats: the latest was number %d", name, count,
           found->other);
    EXPECT(found->sleeps == 0, "%s, %zu floats: in each batch", name, count);
    return 0;
}

static uint64_t lowered(const rank_state *r)
{
    ring_comm_info info = {.size = sizeof info};
    return ring_comm_get_info(r->comm, &info) == RING_OK ? info.lowered : 0;
}

/* The buffer begins elsewhere: no matter to a program. */
static int lower_nothing(const rank_state *r, int which, size_t count)
{
    rank_state moved = *r;
    const uint64_t before = lowered(r);
    moved.buffer += RANKS * (MOST_FLOATS - count > 64 ? 64 : 0);
    if (make_calls(&moved, which, count, CALLS) != 0)
        return 1;
    EXPECT(before > 0 && lowered(r) == before, "%s, %zu floats: lowered %llu times",
           collectives[which].name, count, (unsigned long long)(lowered(r) - before));
    return 0;
}

static int measure(const rank_state *r, int which, size_t count)
{
    counts found = {.yields = INT_MAX, .sleeps = INT_MAX};
    if (make_calls(r, which, count, WARMUP) != 0 || lower_nothing(r, which, count) != 0)
        return 1;
    for (int batch = 0; batch < BATCHES; batch++) {
        counts now = {0};
        const int allocated = allocations, yielded = atomic_load(&yields);
        atomic_store(&current, &now);
        const int failed = make_calls(r, which, count, CALLS);
        atomic_store(&current, NULL);
        now.allocations = allocations - allocated;
        now.yields = atomic_load(&yields) - yielded;
        if (failed)
            return 1;
        add_batch(&found, &now);
    }
    return judge(r, which, count, &found);
}

/* After half a second ranks compare their calls over the control channel. */
static int wait_for_a_late_peer(const rank_state *r)
{
    const int before = allocations;
    if (r->rank == 1)
        usleep(1500000);
    EXPECT_OK(all_reduce(r, 2));
    EXPECT_OK(barrier(r, 0));
    const int made = allocations - before;
    EXPECT(made == 0, "%d allocations while a peer was late", made);
    return 0;
}

/* ---- A rank: one thread calls, the main one counts ---- */

static void *call_all(void *context)
{
    rank_state *r = context;
    atomic_store(&r->listener, tell_calls());
    if (r->listener < 0)
        return NULL;
    for (int which = 0; which < COLLECTIVES; which++)
        for (int size = 0; size < SIZES; size++)
            if (strcmp(collectives[which].name, "barrier") != 0 || size == 0)
                r->failed |= measure(r, which, sizes[size]);
    r->failed |= wait_for_a_late_peer(r);
    return NULL;
}

static void stay_on_core(int rank)
{
    cpu_set_t allowed, own;
    int seen = 0;
    sched_getaffinity(0, sizeof allowed, &allowed);
    CPU_ZERO(&own);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ == rank)
            CPU_SET(cpu, &own);
    sched_setaffinity(0, sizeof own, &own);
}

static int call_and_count(rank_state *r)
{
    pthread_t caller;
    EXPECT(pthread_create(&caller, NULL, call_all, r) == 0, "no thread");
    while (atomic_load(&r->listener) == 0)
        usleep(1000);
    while (pthread_tryjoin_np(caller, NULL) != 0)
        answer_call(r->listener);
    EXPECT(r->listener > 0, "no seccomp filter");
    return r->failed;
}

static int run_rank(int rank, int ranks, harness_board *board, void *arg)
{
    const bool shared = *(const bool *)arg;
    const size_t bytes = RANKS * MOST_FLOATS * sizeof(float);
    rank_state r = {.rank = rank};
    void *memory = NULL;
    stay_on_core(rank);
    EXPECT_OK(harness_join(rank, ranks, board, &r.comm));
    EXPECT(allocations > 0, "the library's allocations are not counted");
    if (shared)
        EXPECT_OK(ring_mem_alloc(&memory, bytes));
    else
        memory = calloc(1, bytes);
    r.buffer = memory;
    EXPECT(r.buffer != NULL, "no memory");
    const int failed = call_and_count(&r);
    ring_comm_destroy(r.comm);
    if (shared)
        ring_mem_free(memory);
    else
        free(memory);
    return failed;
}

/* @return why two ranks cannot be counted here, NULL if they can. */
static const char *unfit(void)
{
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    if (CPU_COUNT(&allowed) < RANKS)
        return "two ranks need two cores";
    return calls_can_be_told() ? NULL : "no seccomp filter that tells system calls";
}

int main(void)
{
    int failed = 0;
    const char *why = unfit();
    if (why) {
        printf("SKIPPED: %s\n", why);
        return SKIP;
    }
    setenv("RING_TRANSPORT", "shm", 1);
    for (int shared = 0; shared < 2; shared++) {
        bool kind = shared;
        printf("buffers of %s:\n", shared ? "ring_mem_alloc" : "malloc");
        failed += harness_run(HARNESS_PROCESSES, RANKS, run_rank, &kind, NULL);
    }
    return failed != 0;
}
