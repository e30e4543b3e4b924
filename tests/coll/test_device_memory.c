/* SPDX-License-Identifier: Apache-2.0
 * Tests how much memory of GPUs communicators take whose calls GPUs run, over the double of
 * NVIDIA's driver.
 * Usage: test_coll_device_memory shared|own|processes: threads that share a GPU, threads with one
 * each, or processes with one each */
#include "harness.h"

#include "cuda_table.h"
#include "fake_cuda_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

enum { COUNT = 5003 };
#define MEBIBYTE ((uint64_t)1 << 20)

static bool shares, forks;
static cuda_table cu;
static fake_cuda_table fake;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define EXPECT_CUDA(result) EXPECT((result) == CUDA_SUCCESS, "a call of CUDA failed")

static void load_driver(void)
{
    cu = cuda_functions();
    fake = fake_cuda_functions();
}

static void run(int ranks, harness_body body)
{
    const harness_kind kind = forks ? HARNESS_PROCESSES : HARNESS_THREADS;
    assert_int_equal(harness_run(kind, ranks, body, NULL, NULL), 0);
}

/* ---- Ranks -------------------------------------------------------------------------------- */

typedef struct player {
    int rank, ranks, meetings;
    harness_board *board;
    CUstream stream;
    CUdeviceptr src, dst; /* COUNT int32 */
    int32_t host[COUNT];
} player;

static int sit_down(player *p, int rank, int ranks, harness_board *board)
{
    CUcontext context;
    *p = (player){.rank = rank, .ranks = ranks, .board = board};
    pthread_once(&once, load_driver);
    EXPECT_CUDA(cu.init(0));
    EXPECT_CUDA(cu.primary_retain(&context, shares ? 0 : rank));
    EXPECT_CUDA(cu.set_current(context));
    EXPECT_CUDA(cu.stream_create(&p->stream, CU_STREAM_NON_BLOCKING, 0));
    EXPECT_CUDA(cu.mem_alloc(&p->src, sizeof p->host));
    EXPECT_CUDA(cu.mem_alloc(&p->dst, sizeof p->host));
    return 0;
}

/* Waits for all ranks without a call of the library. */
static int meet(player *p)
{
    const int counter = p->meetings++;
    atomic_fetch_add(&p->board->counters[counter], 1);
    EXPECT(harness_await(p->board, counter, p->ranks), "a rank is late");
    return 0;
}

static int ranks_here(const player *p)
{
    return forks ? 1 : p->ranks;
}

static fake_cuda_counts counts(void)
{
    fake_cuda_counts now;
    fake.counters(&now);
    return now;
}

/* ---- Membership --------------------------------------------------------------------------- */

static int join_and_measure(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0 && meet(&p) == 0, "rank %d", rank);
    const uint64_t before = counts().device_bytes;
    EXPECT(meet(&p) == 0, "rank %d", rank);
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(meet(&p) == 0, "rank %d", rank);
    const uint64_t taken = counts().device_bytes - before, here = (uint64_t)ranks_here(&p);
    EXPECT(taken > here * MEBIBYTE, "%llu bytes: GPUs run no calls", (unsigned long long)taken);
    EXPECT(taken <= here * 16 * MEBIBYTE, "%d ranks: %llu bytes for %d", ranks,
           (unsigned long long)taken, (int)here);
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_comm_destroy(comm);
    return 0;
}

static void test_a_member_takes_16_mib(void **state)
{
    setenv("RING_DEVICE_BLOCKS", "64", 1);
    run(2, join_and_measure);
    run(8, join_and_measure);
    unsetenv("RING_DEVICE_BLOCKS");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_member_takes_16_mib),
    };
    if (argc != 2)
        return 2;
    shares = strcmp(argv[1], "shared") == 0;
    forks = strcmp(argv[1], "processes") == 0;
    setenv("RING_TRANSPORT", forks ? "shm" : "loop", 1);
    if (!forks) { /* the GPU process is forked, so before there are threads */
        pthread_once(&once, load_driver);
        (void)cu.init(0);
    }
    return cmocka_run_group_tests_name("coll.device_memory", tests, NULL, NULL);
}
