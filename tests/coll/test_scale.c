/* SPDX-License-Identifier: Apache-2.0
 *
 * Many ranks on few cores: they join in time, under the usual limit on open files, compute what is
 * right, and hold no more than the pairs that they use need.
 * Usage: test_coll_scale processes|threads RANKS [SECONDS]; RING_ALGO chooses the algorithm. All
 * have joined within SECONDS, 5 or for threads 30 if it is not given. */
#include "harness.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { COUNT = 5000 };
enum { JOINED, DESCRIPTORS, MEMORY_KIB }; /* counters of the board */

typedef struct limits {
    double started, join_seconds;
} limits;

static int open_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count - 3; /* ".", ".." and its own */
}

static void note_most(_Atomic int *most, int value)
{
    int old = atomic_load(most);
    while (value > old && !atomic_compare_exchange_weak(most, &old, value))
        continue;
}

static int check_sum(ring_comm *comm, int rank, int ranks, size_t count)
{
    static _Thread_local int32_t x[COUNT];
    for (size_t i = 0; i < count; i++)
        x[i] = rank + (int)(i % 3);
    EXPECT_OK(ring_all_reduce(x, x, count, RING_INT32, RING_SUM, comm, NULL));
    for (size_t i = 0; i < count; i++)
        EXPECT(x[i] == ranks * (ranks - 1) / 2 + ranks * (int)(i % 3), "element %zu: %d", i, x[i]);
    return 0;
}

static int take_part(int rank, int ranks, harness_board *board, void *arg)
{
    const limits *l = arg;
    ring_comm_info info = {.size = sizeof info};
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (atomic_fetch_add(&board->counters[JOINED], 1) + 1 == ranks) {
        const double took = harness_now() - l->started;
        printf("%d ranks are there after %.2f s\n", ranks, took);
        EXPECT(took < l->join_seconds, "%d ranks took %g s to join", ranks, took);
    }
    EXPECT_OK(ring_barrier(comm, NULL));
    const double start = harness_now();
    EXPECT(check_sum(comm, rank, ranks, COUNT) == 0, "all_reduce");
    EXPECT(check_sum(comm, rank, ranks, 1) == 0, "a small all_reduce");
    EXPECT_OK(ring_barrier(comm, NULL));
    if (rank == 0)
        printf("two calls of all_reduce and a barrier: %.2f s\n", harness_now() - start);
    EXPECT_OK(ring_comm_get_info(comm, &info));
    note_most(&board->counters[MEMORY_KIB], (int)(info.memory >> 10));
    note_most(&board->counters[DESCRIPTORS], open_descriptors());
    EXPECT_OK(ring_barrier(comm, NULL));
    if (rank == 0)
        printf("at most %d descriptors a process, %d KiB a rank\n",
               atomic_load(&board->counters[DESCRIPTORS]),
               atomic_load(&board->counters[MEMORY_KIB]));
    ring_comm_destroy(comm);
    return 0;
}

/* What the kernel bounds for users it does not bound for root: descriptors under way between
 * processes, for one. */
static void become_a_user(void)
{
    enum { NOBODY = 65534 };
    if (geteuid() != 0)
        return;
    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
        printf("these ranks are root's: %m\n");
}

/* @return false: threads of one process need more descriptors than there are to be had. */
static bool has_descriptors(int ranks)
{
    enum { EACH = 14 };
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    return files.rlim_cur >= (rlim_t)ranks * EACH;
}

int main(int argc, char **argv)
{
    const int ranks = argc >= 3 ? atoi(argv[2]) : 0;
    const bool threads = argc >= 3 && strcmp(argv[1], "threads") == 0;
    const struct rlimit files = {.rlim_cur = 1024, .rlim_max = 1024};
    if (ranks < 1 || ranks > HARNESS_MAX_RANKS)
        return 2;
    if (!threads) {
        setrlimit(RLIMIT_NOFILE, &files);
        become_a_user();
    }
    if (threads && !has_descriptors(ranks)) {
        printf("skipped: %d ranks as threads need more than this limit on open files\n", ranks);
        return 77;
    }
    limits l = {.started = harness_now(), .join_seconds = threads ? 30 : 5};
    if (argc > 3)
        l.join_seconds = atof(argv[3]);
    const int failed = harness_run(threads ? HARNESS_THREADS : HARNESS_PROCESSES, ranks, take_part,
                                   &l, NULL);
    printf("%.2f s in all, %d ranks failed\n", harness_now() - l.started, failed);
    return failed != 0;
}
