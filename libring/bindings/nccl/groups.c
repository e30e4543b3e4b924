/* SPDX-License-Identifier: Apache-2.0
 * NCCL's groups over libring's. The calls of a group go to libring's group as they are made. The
 * starts of communicators begin at once, without blocking, and the group's end waits for them, so
 * that one thread can start the communicators of several ranks. */
#include "nccl_comm.h"

#include <stdlib.h>
#include <string.h>

typedef struct group_start {
    ncclComm_t comm, *out;
} group_start;

static _Thread_local struct {
    int depth;
    bool open; /* libring's group */
    ncclResult_t result;
    ncclComm_t *comms; /* of the calls */
    group_start *starts;
    int comm_count, start_count;
} group;

/* Appends a member of @p bytes to a list. @return its place; NULL: no memory. */
static void *append(void **list, int *count, size_t bytes)
{
    void *longer = realloc(*list, (size_t)(*count + 1) * bytes);
    if (longer == NULL)
        return NULL;
    *list = longer;
    return (char *)longer + (size_t)(*count)++ * bytes;
}

bool nccl_group_is_open(void)
{
    return group.depth > 0;
}

ncclResult_t nccl_group_note(ncclResult_t result)
{
    if (group.depth > 0 && group.result == ncclSuccess && result != ncclInProgress)
        group.result = result;
    return result;
}

static ncclResult_t keep(ncclComm_t comm)
{
    for (int i = group.comm_count - 1; i >= 0; i--)
        if (group.comms[i] == comm)
            return ncclSuccess;
    void *list = group.comms;
    ncclComm_t *c = append(&list, &group.comm_count, sizeof *c);
    group.comms = list;
    if (c == NULL)
        return nccl_refuse(ncclSystemError, "out of memory while adding a call to a group");
    *c = comm;
    atomic_fetch_add(&comm->references, 1);
    return ncclSuccess;
}

ncclResult_t nccl_group_enter(ncclComm_t comm)
{
    if (group.depth == 0)
        return ncclSuccess;
    NCCL_TRY(keep(comm));
    if (group.open)
        return ncclSuccess;
    const ring_status status = ring_group_start();
    group.open = status == RING_OK;
    return nccl_result(status);
}

ncclResult_t nccl_group_add_start(ncclComm_t comm, ncclComm_t *out)
{
    void *list = group.starts;
    group_start *s = append(&list, &group.start_count, sizeof *s);
    group.starts = list;
    if (s == NULL)
        return nccl_refuse(ncclSystemError, "out of memory while starting a communicator");
    *s = (group_start){comm, out};
    atomic_fetch_add(&comm->references, 1);
    return ncclSuccess;
}

/* Waits until a communicator of a blocking start is ready. */
static ncclResult_t await_start(ncclComm_t comm)
{
    ring_comm_info info = {.size = sizeof info};
    NCCL_TRY(nccl_enter_any(comm, "ncclGroupEnd"));
    const ncclResult_t result = comm->blocking ? nccl_result(ring_comm_get_info(comm->ring, &info))
                                               : ncclInProgress;
    atomic_store(&comm->ready, result == ncclSuccess);
    nccl_leave(comm);
    return result;
}

/* @param drops  the group has failed, so other ranks may never start: nothing is waited for. */
static ncclResult_t end_starts(bool drops)
{
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < group.start_count; i++) {
        const group_start *s = &group.starts[i];
        const ncclResult_t own = drops ? ncclInvalidUsage : await_start(s->comm);
        if (own != ncclSuccess && own != ncclInProgress) {
            nccl_end(s->comm, true);
            *s->out = NULL;
        }
        nccl_release(s->comm);
        if (result == ncclSuccess || result == ncclInProgress)
            result = own != ncclSuccess ? own : result;
    }
    return drops ? ncclSuccess : result;
}

/* Makes the calls of the group, or drops them if one was refused or a communicator has ended. */
static ncclResult_t end_calls(bool drops)
{
    int inside = 0;
    ncclResult_t result = ncclSuccess;
    while (!drops && inside < group.comm_count && result == ncclSuccess) {
        result = nccl_enter_any(group.comms[inside], "ncclGroupEnd");
        inside += result == ncclSuccess;
    }
    if (group.open && (drops || result != ncclSuccess))
        (void)ring_group_drop();
    else if (group.open)
        result = nccl_result(ring_group_end());
    for (int i = 0; i < inside; i++)
        nccl_leave(group.comms[i]);
    for (int i = 0; i < group.comm_count; i++)
        nccl_release(group.comms[i]);
    return result;
}

/* Ends the outermost level. @param drops  the calls are not made. */
static ncclResult_t end(bool drops)
{
    const ncclResult_t noted = group.result;
    char text[512];
    if (noted != ncclSuccess)
        text_format(text, sizeof text, "%s", fail_text()); /* of the call that was refused */
    const ncclResult_t called = end_calls(drops || noted != ncclSuccess);
    const ncclResult_t started = end_starts(drops || noted != ncclSuccess);
    free(group.comms);
    free(group.starts);
    memset(&group, 0, sizeof group);
    if (noted != ncclSuccess)
        return nccl_refuse(noted, "%s", text);
    return called != ncclSuccess ? called : started;
}

ncclResult_t ncclGroupStart(void)
{
    group.depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (group.depth == 0)
        return nccl_refuse(ncclInvalidUsage, "ncclGroupEnd: no group is open in this thread");
    if (group.depth > 1) {
        group.depth--;
        return ncclSuccess;
    }
    return end(false);
}

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info)
{
    if (group.depth == 0)
        return nccl_refuse(ncclInvalidUsage,
                           "ncclGroupSimulateEnd: no group is open in this thread");
    const ncclResult_t result = end(true);
    if (info != NULL)
        info->estimatedTime = NCCL_UNDEF_FLOAT;
    return result != ncclSuccess
               ? result
               : nccl_refuse(ncclInvalidUsage,
                             "ncclGroupSimulateEnd: libring estimates no times of groups; the "
                             "group's calls are dropped");
}
