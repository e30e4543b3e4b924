/* SPDX-License-Identifier: Apache-2.0
 * The functions of NCCL that libring refuses. Programs link them, and some ask them whether a
 * feature is there. */
#include "nccl_comm.h"

static ncclResult_t unsupported(const char *call, const char *what)
{
    return nccl_refuse(ncclInvalidUsage, "%s: libring does not support %s", call, what);
}

ncclResult_t ncclDevCommCreate(ncclComm_t comm, const struct ncclDevCommRequirements *requirements,
                               struct ncclDevComm *out)
{
    return unsupported("ncclDevCommCreate", "calls from the caller's kernels");
}

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const struct ncclDevComm *device_comm)
{
    return unsupported("ncclDevCommDestroy", "calls from the caller's kernels");
}

static ncclTeam_t no_team(const char *call)
{
    (void)unsupported(call, "teams of calls from the caller's kernels");
    return (ncclTeam_t){0, 0, 0};
}

ncclTeam_t ncclTeamLsa(ncclComm_t comm)
{
    return no_team("ncclTeamLsa");
}

ncclTeam_t ncclTeamWorld(ncclComm_t comm)
{
    return no_team("ncclTeamWorld");
}

ncclTeam_t ncclTeamRail(ncclComm_t comm)
{
    return no_team("ncclTeamRail");
}

ncclResult_t ncclCommQueryProperties(ncclComm_t comm, struct ncclCommProperties *properties)
{
    return unsupported("ncclCommQueryProperties",
                       "properties, which describe calls from the caller's kernels");
}

ncclResult_t ncclCommMemStats(ncclComm_t comm, int statistic, uint64_t *value)
{
    return unsupported("ncclCommMemStats", "statistics of NCCL's memory");
}

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags)
{
    return unsupported("ncclCommSuspend", "communicators without memory");
}

ncclResult_t ncclCommResume(ncclComm_t comm)
{
    return unsupported("ncclCommResume", "communicators without memory");
}

ncclResult_t ncclPutSignal(const void *src, size_t count, ncclDataType_t type, int peer,
                           ncclWindow_t window, size_t offset, int signal, int context,
                           unsigned int flags, ncclComm_t comm, cudaStream_t stream)
{
    return unsupported("ncclPutSignal", "one-sided calls");
}

ncclResult_t ncclSignal(int peer, int signal, int context, unsigned int flags, ncclComm_t comm,
                        cudaStream_t stream)
{
    return unsupported("ncclSignal", "one-sided calls");
}

ncclResult_t ncclWaitSignal(int count, struct ncclWaitSignalDesc *signals, ncclComm_t comm,
                            cudaStream_t stream)
{
    return unsupported("ncclWaitSignal", "one-sided calls");
}

ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int rank, void **out)
{
    return unsupported("ncclGetLsaDevicePointer", "pointers into windows");
}

ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **out)
{
    return unsupported("ncclGetPeerDevicePointer", "pointers into windows");
}

ncclResult_t ncclGetMultimemDevicePointer(ncclWindow_t window, size_t offset, void *team,
                                          void **out)
{
    return unsupported("ncclGetMultimemDevicePointer", "pointers into windows");
}

ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **out)
{
    return unsupported("ncclGetLsaMultimemDevicePointer", "pointers into windows");
}
