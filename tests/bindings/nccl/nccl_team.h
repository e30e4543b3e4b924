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

/** Makes a call for each rank `r` of the team `t`, in a group if there are several. */
#define TEAM_CALL(t, call) \
    do { \
        if ((t)->count > 1) \
            EXPECT_NCCL(ncclGroupStart()); \
        for (team_rank *r = (t)->of; r < (t)->of + (t)->count; r++) { \
            team_use(r); \
            EXPECT_BEGUN(call); \
        } \
        if ((t)->count > 1) \
            EXPECT_BEGUN(ncclGroupEnd()); \
    } while (0)

/** Pointers of the rank `r` for NCCL. */
#define TEAM_SRC ((void *)(uintptr_t)r->src)
#define TEAM_DST ((void *)(uintptr_t)r->dst)

#endif
