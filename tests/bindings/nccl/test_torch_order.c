/* SPDX-License-Identifier: Apache-2.0
 * Calls NCCL's functions in the order of PyTorch's nccl backend, since its build for the CPU cannot
 * load libnccl.so.2: lazy communicators, an eager split, coalesced calls, messages, memory pools,
 * premultiplied sums, and the ends by destroy, abort or exit, all beside a watchdog thread
 * that queries errors. Ranks are processes with a GPU each. */
#include "nccl_team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

enum { RANKS = 2, STEPS = 30 };
typedef enum ending { DESTROY, ABORT, EXIT, ENDINGS } ending;

/* ---- The watchdog --------------------------------------------------------------------------- */

/* Asks all communicators for errors until it is told to stop, as PyTorch's watchdog does. */
typedef struct watchdog {
    pthread_t thread;
    ncclComm_t comms[2];
    _Atomic int count; /* communicators */
    _Atomic bool stops;
    _Atomic int errors;
} watchdog;

static void *watch(void *context)
{
    watchdog *w = context;
    ncclResult_t state;
    while (!atomic_load(&w->stops)) {
        for (int i = 0; i < atomic_load(&w->count); i++)
            if (ncclCommGetAsyncError(w->comms[i], &state) != ncclSuccess || state != ncclSuccess)
                atomic_fetch_add(&w->errors, 1);
        usleep(1000);
    }
    return NULL;
}

static void watch_too(watchdog *w, ncclComm_t comm)
{
    w->comms[atomic_load(&w->count)] = comm;
    atomic_fetch_add(&w->count, 1);
}

static int stop_watching(watchdog *w)
{
    atomic_store(&w->stops, true);
    pthread_join(w->thread, NULL);
    EXPECT(atomic_load(&w->errors) == 0, "%d errors", atomic_load(&w->errors));
    return 0;
}

/* ---- What a program does ----------------------------------------------------------------------
 */

static int write_all(team_rank *r, float value)
{
    float *host = (float *)r->host;
    for (int i = 0; i < TEAM_COUNT; i++)
        host[i] = value;
    return team_write(r, TEAM_COUNT * sizeof *host);
}

static int expect_all(team_rank *r, CUdeviceptr from, float value)
{
    const float *host = (const float *)r->host;
    EXPECT(team_read(r, from, TEAM_COUNT * sizeof *host) == 0, "rank %d", r->rank);
    for (int i = 0; i < TEAM_COUNT; i++)
        EXPECT(host[i] == value, "element %d is %g and not %g", i, (double)host[i], (double)value);
    return 0;
}

/* DDP: each step sums two buckets in one group, on the communicator's own stream, for which the
 * program's stream waits. */
static int train(team_rank *r)
{
    CUevent event;
    EXPECT_CUDA(team_cuda.event_create(&event, CU_EVENT_DISABLE_TIMING));
    EXPECT(write_all(r, 1) == 0, "write");
    for (int step = 0; step < STEPS; step++) {
        EXPECT_CUDA(team_cuda.event_record(event, r->stream));
        EXPECT_CUDA(team_cuda.stream_wait_event(r->other, event, 0));
        EXPECT_NCCL(ncclGroupStart());
        EXPECT_NCCL(ncclAllReduce(TEAM_SRC, TEAM_DST, 1000, ncclFloat, ncclAvg, r->comm, r->other));
        EXPECT_NCCL(ncclAllReduce((char *)TEAM_SRC + 4000, (char *)TEAM_DST + 4000,
                                  TEAM_COUNT - 1000, ncclFloat, ncclAvg, r->comm, r->other));
        EXPECT_NCCL(ncclGroupEnd());
        EXPECT_CUDA(team_cuda.event_record(event, r->other));
        EXPECT_CUDA(team_cuda.stream_wait_event(r->stream, event, 0));
        EXPECT_CUDA(team_cuda.copy_async(r->src, r->dst, TEAM_COUNT * 4, r->stream));
    }
    EXPECT_CUDA(team_cuda.event_destroy(event));
    return expect_all(r, r->src, 1);
}

/* batch_isend_irecv() with the other rank, and all_to_all() by messages that also go to itself. */
static int exchange(team_rank *r)
{
    EXPECT(write_all(r, (float)(r->rank + 1)) == 0, "write");
    EXPECT_NCCL(ncclGroupStart());
    EXPECT_NCCL(ncclSend(TEAM_SRC, TEAM_COUNT, ncclFloat, 1 - r->rank, r->comm, r->stream));
    EXPECT_NCCL(ncclRecv(TEAM_DST, TEAM_COUNT, ncclFloat, 1 - r->rank, r->comm, r->stream));
    EXPECT_NCCL(ncclGroupEnd());
    EXPECT(expect_all(r, r->dst, (float)(2 - r->rank)) == 0, "messages");
    EXPECT_NCCL(ncclGroupStart());
    for (int peer = 0; peer < RANKS; peer++) {
        const size_t at = (size_t)peer * TEAM_COUNT * 2;
        EXPECT_NCCL(
            ncclSend((char *)TEAM_SRC + at, TEAM_COUNT / 2, ncclFloat, peer, r->comm, r->stream));
        EXPECT_NCCL(
            ncclRecv((char *)TEAM_DST + at, TEAM_COUNT / 2, ncclFloat, peer, r->comm, r->stream));
    }
    EXPECT_NCCL(ncclGroupEnd());
    EXPECT_CUDA(team_cuda.stream_synchronize(r->stream));
    return 0;
}

/* A memory pool of ncclMemAlloc() whose segments are registered, and a scaled sum as FSDP2's. */
static int use_pool(team_rank *r)
{
    const float half = 0.5F;
    void *segment, *handle;
    ncclRedOp_t op;
    EXPECT_NCCL(ncclMemAlloc(&segment, TEAM_BYTES));
    EXPECT_NCCL(ncclCommRegister(r->comm, segment, TEAM_BYTES, &handle));
    EXPECT(write_all(r, 2) == 0, "write");
    EXPECT_NCCL(
        ncclRedOpCreatePreMulSum(&op, (void *)&half, ncclFloat, ncclScalarHostImmediate, r->comm));
    EXPECT_NCCL(ncclReduceScatter(TEAM_SRC, segment, TEAM_COUNT / RANKS, ncclFloat, op, r->comm,
                                  r->stream));
    EXPECT_NCCL(ncclRedOpDestroy(op, r->comm));
    EXPECT_NCCL(
        ncclAllGather(segment, TEAM_DST, TEAM_COUNT / RANKS, ncclFloat, r->comm, r->stream));
    EXPECT(expect_all(r, r->dst, 2) == 0, "a scaled sum");
    EXPECT_NCCL(ncclCommDeregister(r->comm, handle));
    EXPECT_NCCL(ncclMemFree(segment));
    return 0;
}

static int end_by(ending how, team_rank *r, ncclComm_t part)
{
    if (how == EXIT)
        return 0; /* new versions of PyTorch end nothing */
    if (how == ABORT) {
        EXPECT_NCCL(ncclCommAbort(part));
        EXPECT_NCCL(ncclCommAbort(r->comm));
        return 0;
    }
    EXPECT_NCCL(ncclCommFinalize(part));
    EXPECT_NCCL(ncclCommDestroy(part));
    EXPECT_NCCL(ncclCommFinalize(r->comm));
    EXPECT_NCCL(ncclCommDestroy(r->comm));
    return 0;
}

static int process_group(int rank, int ranks, harness_board *board, void *arg)
{
    static watchdog w; /* its communicators stay reachable, which leak checkers want */
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t part;
    team t;
    int version;
    config.splitShare = 1;
    config.commName = "default";
    EXPECT(team_open(&t, rank, 1, RANKS, RANKS) == 0, "rank %d", rank);
    team_rank *r = &t.of[0];
    EXPECT_NCCL(ncclGetVersion(&version));
    EXPECT(pthread_create(&w.thread, NULL, watch, &w) == 0, "no thread");
    EXPECT(team_join(&t, team_id(rank, board), &config) == 0, "rank %d", rank);
    watch_too(&w, r->comm);
    EXPECT_NCCL(ncclCommSplit(r->comm, 0, rank, &part, &config));
    watch_too(&w, part);
    EXPECT(train(r) == 0, "rank %d", rank);
    team_rank on_part = *r;
    on_part.comm = part;
    EXPECT(train(&on_part) == 0, "rank %d", rank);
    EXPECT(exchange(r) == 0, "rank %d", rank);
    EXPECT(use_pool(r) == 0, "rank %d", rank);
    EXPECT(stop_watching(&w) == 0, "rank %d", rank);
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, RANKS), "a rank is late");
    return end_by(*(const ending *)arg, r, part);
}

static void a_process_group_works_and_ends(void **state)
{
    for (ending how = DESTROY; how < ENDINGS; how++)
        assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, process_group, &how, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_group_works_and_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
