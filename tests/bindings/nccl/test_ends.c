/* SPDX-License-Identifier: Apache-2.0
 * Checks how communicators of NCCL over libring end, over the double of the driver: aborts in each
 * phase, lost ranks, ranks that exit, and wrong calls. Ranks are processes with a GPU each. */
#include "nccl_team.h"

#include "fake_cuda_table.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

enum { RANKS = 2 };

static int sit_down(team *t, int rank, harness_board *board)
{
    EXPECT(team_open(t, rank, 1, RANKS, RANKS) == 0, "rank %d", rank);
    return team_join(t, team_id(rank, board), NULL);
}

static ncclResult_t sum(const team_rank *r)
{
    return ncclAllReduce(TEAM_SRC, TEAM_DST, TEAM_COUNT, ncclFloat, ncclSum, r->comm, r->stream);
}

static ncclResult_t state_of(const team_rank *r)
{
    ncclResult_t state = ncclInternalError;
    (void)ncclCommGetAsyncError(r->comm, &state);
    return state;
}

/* Waits until the communicator has failed. */
static int await_failure(const team_rank *r)
{
    for (const double since = harness_now(); state_of(r) == ncclSuccess; usleep(1000))
        EXPECT(harness_is_prompt(since), "rank %d does not fail", r->rank);
    EXPECT(state_of(r) == ncclRemoteError, "%s: %s", ncclGetErrorString(state_of(r)),
           ncclGetLastError(r->comm));
    return 0;
}

static void meet(harness_board *board, int counter)
{
    atomic_fetch_add(&board->counters[counter], 1);
    (void)harness_await(board, counter, RANKS);
}

static void *abort_later(void *comm)
{
    usleep(100000);
    return (void *)(intptr_t)ncclCommAbort(comm);
}

static int begin_abort(const team_rank *r, pthread_t *thread)
{
    EXPECT(pthread_create(thread, NULL, abort_later, r->comm) == 0, "no thread");
    return 0;
}

static int end_abort(pthread_t thread, double since)
{
    void *result;
    pthread_join(thread, &result);
    EXPECT((intptr_t)result == ncclSuccess, "the abort fails: %s", ncclGetLastError(NULL));
    EXPECT(harness_is_prompt(since), "the abort took %.1f s", harness_now() - since);
    return 0;
}

/* ---- Starts ---------------------------------------------------------------------------------- */

/* @param arg  the config; NULL: by ncclCommInitRankScalable(), of which the first id counts. */
static int id_of_the_last_rank(int rank, int ranks, harness_board *board, void *arg)
{
    team t;
    EXPECT(team_open(&t, rank, 1, RANKS, RANKS) == 0, "rank %d", rank);
    ncclUniqueId ids[2] = {*team_id(RANKS - 1 - rank, board)}; /* which acts as rank 0 there */
    if (arg != NULL)
        EXPECT(team_join(&t, ids, arg) == 0, "rank %d", rank);
    else
        EXPECT_NCCL(ncclCommInitRankScalable(&t.of[0].comm, RANKS, rank, 2, ids, NULL));
    EXPECT_NCCL(sum(&t.of[0]));
    EXPECT_CUDA(team_cuda.stream_synchronize(t.of[0].stream));
    return team_close(&t);
}

static void any_rank_makes_the_id(void **state)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, id_of_the_last_rank, NULL, NULL), 0);
    for (config.blocking = 0; config.blocking < 2; config.blocking++)
        assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, id_of_the_last_rank, &config, NULL),
                         0);
}

/* ---- Aborts ---------------------------------------------------------------------------------- */

/* The other rank never starts. */
static int abort_a_start(int rank, int ranks, harness_board *board, void *arg)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    const double since = harness_now();
    team t;
    pthread_t thread;
    config.blocking = 0;
    EXPECT(team_open(&t, rank, 1, RANKS, RANKS) == 0, "rank %d", rank);
    const ncclUniqueId *id = team_id(rank, board);
    if (rank == 1)
        return 0;
    EXPECT(ncclCommInitRankConfig(&t.of[0].comm, RANKS, *id, rank, &config) == ncclInProgress, "%s",
           ncclGetLastError(NULL));
    EXPECT(sum(&t.of[0]) == ncclInvalidArgument, "a call during the start");
    EXPECT(state_of(&t.of[0]) == ncclInProgress, "the start has ended");
    EXPECT(begin_abort(&t.of[0], &thread) == 0, "rank %d", rank);
    return end_abort(thread, since);
}

/* Only rank 0 makes a call, and waits for it while another thread aborts. */
static int abort_a_wait(int rank, harness_board *board, bool destroys)
{
    const double since = harness_now();
    team t;
    pthread_t thread;
    EXPECT(sit_down(&t, rank, board) == 0, "rank %d", rank);
    if (rank == 0) {
        EXPECT_NCCL(sum(&t.of[0]));
        EXPECT(begin_abort(&t.of[0], &thread) == 0, "rank %d", rank);
        if (destroys)
            EXPECT_NCCL(ncclCommDestroy(t.of[0].comm));
        else
            EXPECT_CUDA(team_cuda.stream_synchronize(t.of[0].stream));
        return end_abort(thread, since);
    }
    EXPECT(await_failure(&t.of[0]) == 0, "rank %d", rank);
    EXPECT_NCCL(ncclCommAbort(t.of[0].comm));
    return 0;
}

static int abort_a_call(int rank, int ranks, harness_board *board, void *arg)
{
    return abort_a_wait(rank, board, false);
}

static int abort_a_destroy(int rank, int ranks, harness_board *board, void *arg)
{
    return abort_a_wait(rank, board, true);
}

/* Another thread aborts the communicator of an open group. */
static int abort_a_group(int rank, int ranks, harness_board *board, void *arg)
{
    const double since = harness_now();
    team t;
    pthread_t thread;
    EXPECT(sit_down(&t, rank, board) == 0, "rank %d", rank);
    EXPECT_NCCL(ncclGroupStart());
    EXPECT_NCCL(sum(&t.of[0]));
    EXPECT(begin_abort(&t.of[0], &thread) == 0, "rank %d", rank);
    EXPECT(end_abort(thread, since) == 0, "rank %d", rank);
    EXPECT(ncclGroupEnd() == ncclInvalidUsage, "%s", ncclGetLastError(NULL));
    EXPECT_CUDA(team_cuda.stream_synchronize(t.of[0].stream));
    return 0;
}

/* Another thread aborts the communicator while the group's calls are being made. @param arg  the
 * microseconds that it waits before. */
static void *abort_soon(void *context)
{
    const team_rank *r = context;
    usleep((useconds_t)r->rank);
    return (void *)(intptr_t)ncclCommAbort(r->comm);
}

static int abort_a_group_end(int rank, int ranks, harness_board *board, void *arg)
{
    enum { CALLS = 100 };
    const double since = harness_now();
    team t;
    pthread_t thread;
    EXPECT(sit_down(&t, rank, board) == 0, "rank %d", rank);
    team_rank victim = t.of[0];
    victim.rank = *(const int *)arg;
    EXPECT_NCCL(ncclGroupStart());
    for (int i = 0; i < CALLS; i++)
        EXPECT_NCCL(sum(&t.of[0]));
    meet(board, 0);
    EXPECT(pthread_create(&thread, NULL, abort_soon, &victim) == 0, "no thread");
    (void)ncclGroupEnd(); /* some of its calls may have been made */
    EXPECT(end_abort(thread, since) == 0, "rank %d", rank);
    EXPECT_CUDA(team_cuda.stream_synchronize(t.of[0].stream));
    return 0;
}

/* The end of a group waits for a rank that never starts, until another thread aborts. */
static int abort_a_group_of_starts(int rank, int ranks, harness_board *board, void *arg)
{
    const double since = harness_now();
    team t;
    pthread_t thread;
    EXPECT(team_open(&t, rank, 1, RANKS, RANKS) == 0, "rank %d", rank);
    const ncclUniqueId *id = team_id(rank, board);
    if (rank == 1)
        return 0;
    EXPECT_NCCL(ncclGroupStart());
    EXPECT_NCCL(ncclCommInitRank(&t.of[0].comm, RANKS, *id, rank));
    EXPECT(begin_abort(&t.of[0], &thread) == 0, "rank %d", rank);
    EXPECT(ncclGroupEnd() == ncclRemoteError, "%s", ncclGetLastError(NULL));
    EXPECT(t.of[0].comm == NULL, "the communicator is there");
    return end_abort(thread, since);
}

/* Only rank 0 replays a call. */
static int abort_a_replay(int rank, int ranks, harness_board *board, void *arg)
{
    const double since = harness_now();
    team t;
    pthread_t thread;
    CUgraph graph;
    CUgraphExec exec;
    EXPECT(sit_down(&t, rank, board) == 0, "rank %d", rank);
    EXPECT_CUDA(team_cuda.begin_capture(t.of[0].stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_NCCL(sum(&t.of[0]));
    EXPECT_CUDA(team_cuda.end_capture(t.of[0].stream, &graph));
    EXPECT_CUDA(team_cuda.graph_instantiate(&exec, graph, 0));
    meet(board, 0);
    if (rank == 0) {
        EXPECT_CUDA(team_cuda.graph_launch(exec, t.of[0].stream));
        EXPECT(begin_abort(&t.of[0], &thread) == 0, "rank %d", rank);
        EXPECT_CUDA(team_cuda.stream_synchronize(t.of[0].stream));
        EXPECT(end_abort(thread, since) == 0, "rank %d", rank);
    }
    meet(board, 1);
    if (rank == 1)
        EXPECT_NCCL(ncclCommAbort(t.of[0].comm));
    return 0;
}

/* All calls have passed, so the other rank's communicator stays. */
static int abort_afterwards(int rank, int ranks, harness_board *board, void *arg)
{
    team t;
    EXPECT(sit_down(&t, rank, board) == 0, "rank %d", rank);
    EXPECT_NCCL(sum(&t.of[0]));
    EXPECT_CUDA(team_cuda.stream_synchronize(t.of[0].stream));
    meet(board, 0);
    if (rank == 0)
        EXPECT_NCCL(ncclCommAbort(t.of[0].comm));
    meet(board, 1);
    if (rank == 0)
        return 0;
    usleep(200000);
    EXPECT(state_of(&t.of[0]) == ncclSuccess, "%s", ncclGetLastError(t.of[0].comm));
    EXPECT_NCCL(ncclCommDestroy(t.of[0].comm));
    return 0;
}

/* Rank 1 cannot open memory of rank 0's GPU, and aborts while rank 0 waits for it for 4 s. */
static int abort_as_gpus_meet(const team_rank *r, harness_board *board)
{
    const fake_cuda_table fake = fake_cuda_functions();
    const double since = harness_now();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm;
    config.blocking = 0;
    if (r->rank == 1)
        fake.fail_nth_of("cuIpcOpenMemHandle_v2", 1, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_BEGUN(ncclCommInitRankConfig(&comm, RANKS, *team_id(r->rank, board), r->rank, &config));
    for (ncclResult_t state = ncclInProgress; state == ncclInProgress; usleep(1000)) {
        EXPECT_NCCL(ncclCommGetAsyncError(comm, &state));
        EXPECT(harness_is_prompt(since), "rank %d is still in progress", r->rank);
        if (r->rank == 1 && fake.last_failed() != NULL)
            break;
    }
    usleep(r->rank == 1 ? 300000 : 0); /* rank 0 waits */
    EXPECT_NCCL(ncclCommAbort(comm));
    return 0;
}

/* Later communicators have all of the blocks of rank 0's GPU that an aborted start had. */
static int blocks_after_an_abort(int rank, int ranks, harness_board *board, void *arg)
{
    enum { BYTES = 4 << 20, BLOCKS = 2 };
    CUdeviceptr memory;
    unsigned blocks;
    team t;
    EXPECT(team_open(&t, rank, 1, RANKS, RANKS) == 0, "rank %d", rank);
    EXPECT_CUDA(team_cuda.mem_alloc(&memory, BYTES));
    EXPECT(abort_as_gpus_meet(&t.of[0], board) == 0, "rank %d", rank);
    meet(board, 0);
    usleep(5000000);
    if (rank == 0)
        EXPECT_NCCL(ncclGetUniqueId((ncclUniqueId *)&board->id));
    meet(board, 1);
    EXPECT(team_join(&t, (const ncclUniqueId *)&board->id, NULL) == 0, "rank %d", rank);
    EXPECT_NCCL(ncclAllReduce((void *)(uintptr_t)memory, (void *)(uintptr_t)memory,
                              BYTES / sizeof(float), ncclFloat, ncclSum, t.of[0].comm,
                              t.of[0].stream));
    EXPECT_CUDA(team_cuda.stream_synchronize(t.of[0].stream));
    const char *kernel = fake_cuda_functions().last_kernel(&blocks);
    EXPECT(blocks == BLOCKS, "%s had %u blocks", kernel, blocks);
    EXPECT_CUDA(team_cuda.mem_free(memory));
    return team_close(&t);
}

static void an_aborted_start_gives_its_blocks_back(void **state)
{
    assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, blocks_after_an_abort, NULL, NULL), 0);
}

static void aborts_end_every_phase(void **state)
{
    static const harness_body bodies[] = {abort_a_start,  abort_a_call,     abort_a_group,
                                          abort_a_replay, abort_afterwards, abort_a_group_of_starts,
                                          abort_a_destroy};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        const int failed = harness_run(HARNESS_PROCESSES, RANKS, bodies[i], NULL, NULL);
        if (failed != 0)
            fprintf(stderr, "body %zu\n", i);
        assert_int_equal(failed, 0);
    }
    for (int us = 0; us <= 10000; us = 2 * us + 100)
        assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, abort_a_group_end, &us, NULL), 0);
}

/* ---- Ranks that leave -------------------------------------------------------------------------
 */

/* The stream of the other rank stops at the call until the abort, so that nobody saves its
 * result. */
static int lost_rank(int rank, int ranks, harness_board *board, void *arg)
{
    team t;
    EXPECT(sit_down(&t, rank, board) == 0, "rank %d", rank);
    if (rank == 1) {
        (void)harness_await(board, 0, 1);
        raise(SIGKILL);
    }
    EXPECT_NCCL(sum(&t.of[0]));
    atomic_store(&board->counters[0], 1);
    EXPECT(await_failure(&t.of[0]) == 0, "rank %d", rank);
    EXPECT(sum(&t.of[0]) == ncclRemoteError, "a call after the failure");
    EXPECT(team_cuda.stream_query(t.of[0].stream) == CUDA_ERROR_NOT_READY,
           "the stream went on by itself");
    EXPECT_NCCL(ncclCommAbort(t.of[0].comm));
    EXPECT_CUDA(team_cuda.stream_synchronize(t.of[0].stream));
    return 0;
}

/* Rank 0 goes on alone when rank 1 is lost in a call. */
static int lost_rank_is_left_out(int rank, int ranks, harness_board *board, void *arg)
{
    team t;
    int lost = 1, size = 0;
    ncclComm_t rest;
    EXPECT(sit_down(&t, rank, board) == 0, "rank %d", rank);
    if (rank == 1) {
        (void)harness_await(board, 0, 1);
        raise(SIGKILL);
    }
    EXPECT_NCCL(sum(&t.of[0]));
    atomic_store(&board->counters[0], 1);
    EXPECT(await_failure(&t.of[0]) == 0, "rank %d", rank);
    EXPECT_NCCL(ncclCommShrink(t.of[0].comm, &lost, 1, &rest, NULL, NCCL_SHRINK_ABORT));
    EXPECT_CUDA(team_cuda.stream_synchronize(t.of[0].stream));
    EXPECT_NCCL(ncclCommDestroy(t.of[0].comm));
    EXPECT_NCCL(ncclCommCount(rest, &size));
    EXPECT(size == 1, "%d ranks", size);
    t.of[0].comm = rest;
    EXPECT_NCCL(sum(&t.of[0]));
    return team_close(&t);
}

/* Rank 1 exits without a word when its calls have passed. */
static int rank_exits(int rank, int ranks, harness_board *board, void *arg)
{
    static team t; /* its communicator stays reachable, which leak checkers want */
    EXPECT(sit_down(&t, rank, board) == 0, "rank %d", rank);
    EXPECT_NCCL(sum(&t.of[0]));
    EXPECT_CUDA(team_cuda.stream_synchronize(t.of[0].stream));
    meet(board, 0);
    if (rank == 1)
        return 0;
    usleep(500000); /* rank 1 has exited */
    EXPECT(state_of(&t.of[0]) == ncclSuccess, "%s", ncclGetLastError(t.of[0].comm));
    EXPECT_NCCL(ncclCommDestroy(t.of[0].comm));
    return 0;
}

static void ranks_may_be_lost_or_exit(void **state)
{
    assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, lost_rank, NULL, NULL), 1);
    assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, lost_rank_is_left_out, NULL, NULL), 1);
    assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, rank_exits, NULL, NULL), 0);
}

/* ---- Wrong calls ------------------------------------------------------------------------------
 */

/* A config of NCCL 2.24 ends with four bytes of padding. */
static int old_config(const ncclUniqueId *id)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm;
    config.size = 48;
    config.version = 22403;
    memset((char *)&config + 44, 0x5a, sizeof config - 44);
    EXPECT_NCCL(ncclCommInitRankConfig(&comm, 1, *id, 0, &config));
    EXPECT_NCCL(ncclCommDestroy(comm));
    return 0;
}

static int wrong_calls(int rank, int ranks, harness_board *board, void *arg)
{
    team t;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    ncclComm_t comm, both[2];
    static const int devices[] = {0, 99};
    int version = 0;
    EXPECT(team_open(&t, 0, 1, 1, 1) == 0, "open");
    team_rank *r = &t.of[0];
    EXPECT_NCCL(ncclGetVersion(&version));
    EXPECT(version == NCCL_VERSION_CODE, "%d", version);
    setenv("RING_NCCL_VERSION", "2.27.5", 1);
    EXPECT_NCCL(ncclGetVersion(&version));
    EXPECT(version == 22705, "%d", version);
    setenv("RING_NCCL_VERSION", "new", 1);
    EXPECT(ncclGetVersion(&version) == ncclInvalidUsage, "%d", version);
    EXPECT_NCCL(ncclGetUniqueId(&id));
    EXPECT(ncclCommInitRank(&comm, 1, id, 1) == ncclInvalidArgument, "rank 1 of 1");
    config.magic = 0;
    EXPECT(ncclCommInitRankConfig(&comm, 1, id, 0, &config) == ncclInvalidArgument, "a config");
    EXPECT(strstr(ncclGetLastError(NULL), "NCCL_CONFIG_INITIALIZER") != NULL, "%s",
           ncclGetLastError(NULL));
    EXPECT(old_config(&id) == 0, "an old config");
    EXPECT(ncclCommInitAll(both, 2, devices) == ncclUnhandledCudaError, "%s",
           ncclGetLastError(NULL));
    EXPECT(both[0] == NULL && both[1] == NULL, "communicators of a failed group");
    EXPECT_NCCL(ncclGetUniqueId(&id));
    EXPECT_NCCL(ncclCommInitRank(&r->comm, 1, id, 0));
    EXPECT(ncclAllReduce(TEAM_SRC, TEAM_DST, 1, (ncclDataType_t)99, ncclSum, r->comm, r->stream) ==
               ncclInvalidArgument,
           "type 99");
    EXPECT(ncclAllReduce(TEAM_SRC, TEAM_DST, 1, ncclFloat, ncclSum, NULL, r->stream) ==
               ncclInvalidArgument,
           "no communicator");
    EXPECT(ncclBroadcast(TEAM_SRC, TEAM_DST, 1, ncclFloat, 5, r->comm, r->stream) ==
               ncclInvalidArgument,
           "root 5");
    EXPECT(ncclGroupEnd() == ncclInvalidUsage, "no group");
    EXPECT_NCCL(ncclGroupStart());
    EXPECT(ncclBroadcast(TEAM_SRC, TEAM_DST, 1, ncclFloat, 5, r->comm, r->stream) ==
               ncclInvalidArgument,
           "root 5 in a group");
    EXPECT(ncclGroupEnd() == ncclInvalidArgument, "%s", ncclGetLastError(NULL));
    EXPECT_NCCL(ncclGroupStart());
    EXPECT_NCCL(sum(r));
    EXPECT(ncclGroupSimulateEnd(NULL) == ncclInvalidUsage, "a time");
    EXPECT(ncclDevCommCreate(r->comm, NULL, NULL) == ncclInvalidUsage, "calls of kernels");
    EXPECT(strstr(ncclGetLastError(NULL), "ncclDevCommCreate") != NULL, "%s",
           ncclGetLastError(NULL));
    EXPECT_NCCL(sum(r)); /* the communicator still works */
    EXPECT_CUDA(team_cuda.stream_synchronize(r->stream));
    return team_close(&t);
}

static void wrong_calls_are_refused(void **state)
{
    assert_int_equal(harness_run(HARNESS_PROCESSES, 1, wrong_calls, NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(any_rank_makes_the_id),
        cmocka_unit_test(aborts_end_every_phase),
        cmocka_unit_test(an_aborted_start_gives_its_blocks_back),
        cmocka_unit_test(ranks_may_be_lost_or_exit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
