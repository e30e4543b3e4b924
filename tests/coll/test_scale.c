/* SPDX-License-Identifier: Apache-2.0
 *
 * Many ranks on few cores: they join, under the usual limit on open files, compute what is right,
 * and hold no more than the pairs that they use need. Usage: test_coll_scale processes|threads
 * RANKS [SECONDS]; RING_ALGO chooses the algorithm. With SECONDS, the median of five starts has
 * joined by then. */
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
    const double *started = arg;
    ring_comm_info info = {.size = sizeof info};
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (atomic_fetch_add(&board->counters[JOINED], 1) + 1 == ranks) {
        *(double *)(void *)board->data = harness_now() - *started;
        printf("%d ranks are there after %.2f s\n", ranks, *(double *)(void *)board->data);
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

/* Limits of the kernel for users that root does not have: descriptors under way between processes,
 * for one. */
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

/* @return seconds until all had joined, or -1: a rank failed. */
static double start(int ranks, bool threads)
{
    const double started = harness_now();
    harness_board *board;
    const int failed = harness_run(threads ? HARNESS_THREADS : HARNESS_PROCESSES, ranks, take_part,
                                   (void *)&started, &board);
    const double joined = *(double *)(void *)board->data;
    harness_board_free(board);
    printf("%.2f s in all, %d ranks failed\n", harness_now() - started, failed);
    return failed == 0 ? joined : -1;
}

static int start_in_time(int ranks, bool threads, double seconds)
{
    enum { ROUNDS = 5 };
    double took[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        if ((took[i] = start(ranks, threads)) < 0)
            return 1;
    const double median = harness_median(took, ROUNDS);
    printf("%d ranks join in %.2f s (median), allowed: %g s\n", ranks, median, seconds);
    return median >= seconds;
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
        printf("SKIPPED: %d ranks as threads need more than this limit on open files\n", ranks);
        return 77;
    }
    return argc > 3 ? start_in_time(ranks, threads, atof(argv[3])) : start(ranks, threads) < 0;
}
