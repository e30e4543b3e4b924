/* SPDX-License-Identifier: Apache-2.0
 *
 * nccl_team: the ranks that one thread of a test has of a communicator of NCCL, with a GPU, a
 * stream and buffers each, over the double of the driver. With several ranks each step is a group,
 * as NCCL demands.
 */
#ifndef TEST_NCCL_TEAM_H
#define TEST_NCCL_TEAM_H

#include "cuda_table.h"
#include "harness.h"
#include "nccl.h"

#include <stdio.h>

enum { TEAM_MOST = 4, TEAM_COUNT = 1500, TEAM_BYTES = TEAM_MOST * TEAM_COUNT * 8 };

typedef struct team_rank {
    int rank;
    ncclComm_t comm;
    CUcontext context;
    CUstream stream, other;
    CUdeviceptr src, dst; /* [TEAM_BYTES] */
    _Alignas(8) unsigned char host[TEAM_BYTES];
} team_rank;

typedef struct team {
    int ranks, count; /* of the communicator; of this thread */
    team_rank of[TEAM_MOST];
} team;

/** The driver, after team_start(). */
extern cuda_table team_cuda;

/** Loads and starts the driver, once. The double starts a process for the GPU, so call it before
 * there are threads. @return 0. */
int team_start(void);

/** Makes contexts, streams and buffers of the ranks from @p first on. @param gpus  rank r uses GPU
 *  r % gpus. @return 0. */
int team_open(team *t, int first, int count, int ranks, int gpus);
/** Joins by a group of starts. @param config  NULL: the default. @return 0. */
int team_join(team *t, const ncclUniqueId *id, ncclConfig_t *config);
/** Waits until what does not block has ended. @return 0. */
int team_await(const team *t);
/** Copies @p bytes of `host` to src, and fills dst with other bytes. @return 0. */
int team_write(team_rank *r, size_t bytes);
/** Copies to `host` after the calls in the rank's stream. @return 0. */
int team_read(team_rank *r, CUdeviceptr from, size_t bytes);
/** Destroys the communicators and frees the rest. @return 0. */
int team_close(team *t);

/** Makes the id of the run's board as rank 0, or waits for it. */
const ncclUniqueId *team_id(int rank, harness_board *board);
/** Makes a context current. */
void team_use(const team_rank *r);

#define EXPECT_NCCL(call) \
    do { \
        const ncclResult_t expect_result = (call); \
        EXPECT(expect_result == ncclSuccess, "%s: %s", ncclGetErrorString(expect_result), \
               ncclGetLastError(NULL)); \
    } while (0)

/** As EXPECT_NCCL(), for calls of communicators that may not block. */
#define EXPECT_BEGUN(call) \
    do { \
        const ncclResult_t expect_result = (call); \
        EXPECT(expect_result == ncclSuccess || expect_result == ncclInProgress, "%s: %s", \
               ncclGetErrorString(expect_result), ncclGetLastError(NULL)); \
    } while (0)

/** Makes a call for each rank `r` of the team `t`, in a group if there are several, and sets
 *  @p result, to ncclInternalError if the group's end does not report a call that failed. */
#define TEAM_STEP(t, result, call) \
    do { \
        ncclResult_t step_calls = (t)->count > 1 ? ncclGroupStart() : ncclSuccess; \
        for (team_rank *r = (t)->of; r < (t)->of + (t)->count; r++) { \
            team_use(r); \
            const ncclResult_t step_call = (call); \
            step_calls = step_calls == ncclSuccess ? step_call : step_calls; \
        } \
        const ncclResult_t step_end = (t)->count > 1 ? ncclGroupEnd() : step_calls; \
        const bool step_passes = step_calls == ncclSuccess || step_end != ncclSuccess; \
        (result) = step_passes ? step_end : ncclInternalError; \
    } while (0)

/** The same, for calls that succeed. */
#define TEAM_CALL(t, call) \
    do { \
        ncclResult_t team_result; \
        TEAM_STEP(t, team_result, call); \
        EXPECT_BEGUN(team_result); \
    } while (0)

/** Pointers of the rank `r` for NCCL. */
#define TEAM_SRC ((void *)(uintptr_t)r->src)
#define TEAM_DST ((void *)(uintptr_t)r->dst)

#endif
