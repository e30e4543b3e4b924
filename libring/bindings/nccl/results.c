/* SPDX-License-Identifier: Apache-2.0
 * Turns libring's status and texts into NCCL's results, and tells NCCL's version. */
#include "nccl_comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Many programs print the result alone, and find the reason in NCCL's log. A reason that is found
 * again by the thread, as when it polls, is logged once. */
static void log_reason(const char *text)
{
    static _Thread_local char logged[512];
    const char *wanted = getenv("NCCL_DEBUG");
    if (wanted == NULL || wanted[0] == '\0' || strncmp(logged, text, sizeof logged - 1) == 0)
        return;
    text_format(logged, sizeof logged, "%s", text);
    log_warn("%s", text);
}

ncclResult_t nccl_refuse(ncclResult_t result, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_reason(text);
    (void)fail(RING_ERR_USAGE, "%s", text);
    return result;
}

ncclResult_t nccl_result_of(const ring_comm *comm, ring_status status)
{
    static const struct {
        ring_status status;
        ncclResult_t result;
    } pairs[] = {
        {RING_IN_PROGRESS, ncclInProgress},       {RING_ERR_ARGUMENT, ncclInvalidArgument},
        {RING_ERR_USAGE, ncclInvalidUsage},       {RING_ERR_CONFIG, ncclInvalidUsage},
        {RING_ERR_UNSUPPORTED, ncclInvalidUsage}, {RING_ERR_MISMATCH, ncclInvalidUsage},
        {RING_ERR_MEMORY, ncclSystemError},       {RING_ERR_SYSTEM, ncclSystemError},
        {RING_ERR_AUTH, ncclRemoteError},         {RING_ERR_TIMEOUT, ncclRemoteError},
        {RING_ERR_PEER, ncclRemoteError},         {RING_ERR_ABORTED, ncclRemoteError},
        {RING_ERR_INTERNAL, ncclInternalError},
    };
    if (status == RING_OK)
        return ncclSuccess;
    if (status != RING_IN_PROGRESS) {
        const char *text = ring_last_error(comm);
        log_reason(text);
        (void)fail(status, "%s", text);
    }
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].status == status)
            return pairs[i].result;
    return ncclInternalError;
}

ncclResult_t nccl_result(ring_status status)
{
    return nccl_result_of(NULL, status);
}

ncclResult_t nccl_cuda(CUresult result, const char *call)
{
    if (cuda_check(result, call) == RING_OK)
        return ncclSuccess;
    log_reason(fail_text());
    return ncclUnhandledCudaError;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {
        "no error",
        "unhandled CUDA error: a call of the driver failed",
        "unhandled system error: a call of the operating system failed",
        "internal error: this is a bug in libring",
        "invalid argument",
        "invalid usage: the call is wrong in this state, or libring does not support it",
        "remote error: a peer failed or was lost, or a deadline passed",
        "the operation is in progress",
    };
    return (unsigned)result < ncclNumResults ? texts[result] : "unknown result";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    const char *text = comm != NULL ? ring_last_error(comm->ring) : "";
    return text[0] != '\0' ? text : fail_text();
}

/* Programs compare the version with the one for which they were built. */
ncclResult_t ncclGetVersion(int *version)
{
    const char *set = getenv("RING_NCCL_VERSION");
    int major, minor, patch = 0;
    char rest;
    if (version == NULL)
        return nccl_refuse(ncclInvalidArgument, "ncclGetVersion: version is NULL");
    *version = NCCL_VERSION_CODE;
    if (set == NULL || set[0] == '\0')
        return ncclSuccess;
    const int read = sscanf(set, "%d.%d.%d%c", &major, &minor, &patch, &rest);
    if (read < 2 || read > 3 || major < 2 || major > 99 || minor < 0 || minor > 99 || patch < 0 ||
        patch > 99)
        return nccl_refuse(ncclInvalidUsage,
                           "RING_NCCL_VERSION=%s: must be a version of NCCL from 2.0 to 99.99, "
                           "such as 2.28.9",
                           set);
    *version = NCCL_VERSION(major, minor, patch);
    return ncclSuccess;
}
