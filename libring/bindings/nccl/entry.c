/* SPDX-License-Identifier: Apache-2.0
 * Lets threads enter and leave a communicator, and ends it when no thread is inside. */
#include "nccl_comm.h"

#include <stdlib.h>

ncclResult_t nccl_enter_any(ncclComm_t comm, const char *call)
{
    if (comm == NULL)
        return nccl_refuse(ncclInvalidArgument, "%s: comm is NULL", call);
    atomic_fetch_add(&comm->users, 1);
    if (!atomic_load(&comm->ended))
        return ncclSuccess;
    nccl_leave(comm);
    return nccl_refuse(ncclInvalidUsage, "%s: the communicator was aborted or destroyed", call);
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

void nccl_release(ncclComm_t comm)
{
    if (atomic_fetch_sub(&comm->references, 1) > 1)
        return;
    pthread_mutex_destroy(&comm->lock);
    free(comm->operations);
    free(comm);
}

/* A thread may be inside without a call under way, for example before its call starts, or while it
 * waits for other ranks in ncclCommShrink(). After a moment it is aborted, too. */
void nccl_end(ncclComm_t comm, bool aborts)
{
    const double since = clock_now();
    if (atomic_exchange(&comm->ended, true))
        return;
    if (aborts)
        (void)ring_comm_abort(comm->ring, "ncclCommAbort");
    for (; atomic_load(&comm->users) > 0; clock_sleep(1e-5)) {
        if (aborts || clock_now() < since + 0.01)
            continue;
        (void)ring_comm_abort(comm->ring, "ncclCommAbort");
        aborts = true;
    }
    ring_comm_destroy(comm->ring);
    nccl_release(comm);
}
