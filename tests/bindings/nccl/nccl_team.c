/* SPDX-License-Identifier: Apache-2.0
 * Ranks of NCCL with their GPUs, streams and buffers. */
#include "nccl_team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

cuda_table team_cuda;

static void load(void)
{
    team_cuda = cuda_functions();
    (void)team_cuda.init(0);
}

int team_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    return pthread_once(&once, load);
}

void team_use(const team_rank *r)
{
    (void)team_cuda.set_current(r->context);
}

int team_open(team *t, int first, int count, int ranks, int gpus)
{
    EXPECT(team_start() == 0, "no driver");
    memset(t, 0, sizeof *t);
    t->ranks = ranks;
    t->count = count;
    for (int i = 0; i < count; i++) {
        team_rank *r = &t->of[i];
        r->rank = first + i;
        EXPECT_CUDA(team_cuda.primary_retain(&r->context, r->rank % gpus));
        team_use(r);
        EXPECT_CUDA(team_cuda.stream_create(&r->stream, CU_STREAM_NON_BLOCKING, 0));
        EXPECT_CUDA(team_cuda.stream_create(&r->other, CU_STREAM_NON_BLOCKING, 0));
        EXPECT_CUDA(team_cuda.mem_alloc(&r->src, TEAM_BYTES));
        EXPECT_CUDA(team_cuda.mem_alloc(&r->dst, TEAM_BYTES));
    }
    return 0;
}

const ncclUniqueId *team_id(int rank, harness_board *board)
{
    if (rank == 0)
        atomic_store(&board->id_ready,
                     ncclGetUniqueId((ncclUniqueId *)&board->id) == ncclSuccess ? 1 : -1);
    while (atomic_load(&board->id_ready) == 0)
        sched_yield();
    return (const ncclUniqueId *)&board->id;
}

int team_join(team *t, const ncclUniqueId *id, ncclConfig_t *config)
{
    TEAM_CALL(t, ncclCommInitRankConfig(&r->comm, t->ranks, *id, r->rank, config));
    return team_await(t);
}

int team_await(const team *t)
{
    for (const team_rank *r = t->of; r < t->of + t->count; r++) {
        ncclResult_t state = ncclInProgress;
        for (const double since = harness_now(); state == ncclInProgress; usleep(100)) {
            EXPECT_NCCL(ncclCommGetAsyncError(r->comm, &state));
            EXPECT(harness_is_prompt(since), "rank %d is still in progress", r->rank);
        }
        EXPECT(state == ncclSuccess, "rank %d: %s", r->rank, ncclGetLastError(r->comm));
    }
    return 0;
}

int team_write(team_rank *r, size_t bytes)
{
    team_use(r);
    EXPECT_CUDA(team_cuda.copy_to_device_async(r->src, r->host, bytes, r->stream));
    EXPECT_CUDA(team_cuda.set_bytes_async(r->dst, 0x5a, TEAM_BYTES, r->stream));
    EXPECT_CUDA(team_cuda.stream_synchronize(r->stream));
    return 0;
}

int team_read(team_rank *r, CUdeviceptr from, size_t bytes)
{
    team_use(r);
    EXPECT_CUDA(team_cuda.copy_to_host_async(r->host, from, bytes, r->stream));
    EXPECT_CUDA(team_cuda.stream_synchronize(r->stream));
    return 0;
}

int team_close(team *t)
{
    for (team_rank *r = t->of; r < t->of + t->count; r++) {
        team_use(r);
        EXPECT_NCCL(ncclCommDestroy(r->comm));
    }
    for (team_rank *r = t->of; r < t->of + t->count; r++) {
        team_use(r);
        EXPECT_CUDA(team_cuda.stream_destroy(r->stream));
        EXPECT_CUDA(team_cuda.stream_destroy(r->other));
        EXPECT_CUDA(team_cuda.mem_free(r->src));
        EXPECT_CUDA(team_cuda.mem_free(r->dst));
    }
    return 0;
}
