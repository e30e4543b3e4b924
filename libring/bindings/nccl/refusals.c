/* SPDX-License-Identifier: Apache-2.0
 * The functions of NCCL that libring refuses. Programs link them, and some ask them whether a
 * feature is there. */
#include "nccl_comm.h"

static ncclResult_t unsupported(const char *call, const char *feature)
{
    return nccl_refuse(ncclInvalidUsage, "%s: libring does not support %s", call, feature);
}

#define REFUSE(name, parameters, feature) \
    ncclResult_t name parameters \
    { \
        return unsupported(#name, feature); \
    }

#define REFUSE_TEAM(name) \
    ncclTeam_t name(ncclComm_t comm) \
    { \
        (void)unsupported(#name, "teams of the caller's kernels"); \
        return (ncclTeam_t){0, 0, 0}; \
    }

REFUSE(ncclDevCommCreate,
       (ncclComm_t comm, const struct ncclDevCommRequirements *requirements,
        struct ncclDevComm *out),
       "calls from the caller's kernels")
REFUSE(ncclDevCommDestroy, (ncclComm_t comm, const struct ncclDevComm *device_comm),
       "calls from the caller's kernels")
REFUSE(ncclCommQueryProperties, (ncclComm_t comm, struct ncclCommProperties *properties),
       "properties, which describe calls from the caller's kernels")
REFUSE_TEAM(ncclTeamLsa)
REFUSE_TEAM(ncclTeamWorld)
REFUSE_TEAM(ncclTeamRail)

REFUSE(ncclCommMemStats, (ncclComm_t comm, int statistic, uint64_t *value),
       "statistics of NCCL's memory")
REFUSE(ncclCommSuspend, (ncclComm_t comm, int flags), "communicators without memory")
REFUSE(ncclCommResume, (ncclComm_t comm), "communicators without memory")

REFUSE(ncclPutSignal,
       (const void *src, size_t count, ncclDataType_t type, int peer, ncclWindow_t window,
        size_t offset, int signal, int context, unsigned int flags, ncclComm_t comm,
        cudaStream_t stream),
       "one-sided calls")
REFUSE(ncclSignal,
       (int peer, int signal, int context, unsigned int flags, ncclComm_t comm,
        cudaStream_t stream),
       "one-sided calls")
REFUSE(ncclWaitSignal,
       (int count, struct ncclWaitSignalDesc *signals, ncclComm_t comm, cudaStream_t stream),
       "one-sided calls")
REFUSE(ncclGetLsaDevicePointer, (ncclWindow_t window, size_t offset, int rank, void **out),
       "pointers into windows")
REFUSE(ncclGetPeerDevicePointer, (ncclWindow_t window, size_t offset, int peer, void **out),
       "pointers into windows")
REFUSE(ncclGetMultimemDevicePointer, (ncclWindow_t window, size_t offset, void *team, void **out),
       "pointers into windows")
REFUSE(ncclGetLsaMultimemDevicePointer, (ncclWindow_t window, size_t offset, void **out),
       "pointers into windows")
