/* SPDX-License-Identifier: Apache-2.0
 * Lets threads enter and leave a communicator, so that an abort knows when it can free it. */
#include "nccl_comm.h"

#include <stdlib.h>

ncclResult_t nccl_enter_any(ncclComm_t comm, const char *call)
{
    if (comm == NULL)
        return nccl_refuse(ncclInvalidArgument, "%s: comm is NULL", call);
    atomic_fetch_add(&comm->users, 1);
    if (!atomic_load(&comm->aborted))
        return ncclSuccess;
    nccl_leave(comm);
    return nccl_refuse(ncclInvalidUsage, "%s: the communicator was aborted", call);
}

ncclResult_t nccl_enter(ncclComm_t comm, const char *call)
{
    NCCL_TRY(nccl_enter_any(comm, call));
    if (atomic_load_explicit(&comm->ready, memory_order_acquire))
        return ncclSuccess;
    if (ring_comm_status(comm->ring) != RING_IN_PROGRESS) {
        atomic_store(&comm->ready, true);
        return ncclSuccess;
    }
    nccl_leave(comm);
    return nccl_refuse(ncclInvalidArgument,
                       "%s: the communicator is not ready; call ncclGroupEnd(), or "
                       "ncclCommGetAsyncError() until it is no longer ncclInProgress",
                       call);
}

void nccl_leave(ncclComm_t comm)
{
    atomic_fetch_sub(&comm->users, 1);
}

void nccl_free(ncclComm_t comm)
{
    ring_comm_destroy(comm->ring);
    pthread_mutex_destroy(&comm->lock);
    free(comm->operations);
    free(comm);
}
