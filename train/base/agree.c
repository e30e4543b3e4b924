/* SPDX-License-Identifier: Apache-2.0
 * One small reduction while all is well; the text travels only after a failure. */
#include "agree.h"

#include <string.h>

#include "errors.h"

typedef struct failure {
    int32_t status;
    char text[TRAIN_ERROR_MAX];
} failure;

static ring_status share_failure(ring_comm *comm, ring_status mine, int rank, int everywhere)
{
    failure shared = {.status = (int32_t)mine};
    strncpy(shared.text, train_error(), sizeof shared.text - 1);
    RING_TRY(train_ring(comm, ring_broadcast(&shared, &shared, sizeof shared, RING_UINT8, rank,
                                             comm, NULL)));
    if (everywhere)
        train_fail((ring_status)shared.status, "%s", shared.text);
    else
        train_fail((ring_status)shared.status, "rank %d: %s", rank, shared.text);
    train_error_share();
    return (ring_status)shared.status;
}

ring_status agree(ring_comm *comm, ring_status mine)
{
    const int32_t ranks = ring_comm_size(comm), rank = ring_comm_rank(comm);
    /* lowest failing rank; 1 only if every rank failed */
    int32_t lowest[2] = {mine == RING_OK ? ranks : rank, mine != RING_OK};
    RING_TRY(
        train_ring(comm, ring_all_reduce(lowest, lowest, 2, RING_INT32, RING_MIN, comm, NULL)));
    if (lowest[0] == ranks)
        return RING_OK;
    return share_failure(comm, mine, lowest[0], lowest[1]);
}
