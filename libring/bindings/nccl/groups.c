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

typedef struct group_memory {
    ncclComm_t comm;
    CUdeviceptr memory;
    CUstream stream;
} group_memory;

static _Thread_local struct {
    int depth;
    bool open; /* libring's group */
    ncclResult_t result;
    group_start *starts;
    group_memory *memories;
    int start_count, memory_count;
} group;

/* Appends a member of @p bytes to a list whose capacity is the power of two from its length on.
 * @return its place; NULL: no memory. */
static void *append(void **list, int *count, size_t bytes)
{
    if ((*count & (*count - 1)) == 0) {
        void *longer = realloc(*list, (size_t)(*count > 0 ? 2 * *count : 1) * bytes);
        if (longer == NULL)
            return NULL;
        *list = longer;
    }
    return (char *)*list + (size_t)(*count)++ * bytes;
}

bool nccl_group_is_open(void)
{
    return group.depth > 0;
}

void nccl_group_note(ncclResult_t result)
{
    if (group.depth > 0 && group.result == ncclSuccess)
        group.result = result;
}

ncclResult_t nccl_group_enter(void)
{
    if (group.depth == 0 || group.open)
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
    return ncclSuccess;
}

ring_status nccl_group_add_memory(ncclComm_t comm, CUdeviceptr memory, CUstream stream)
{
    void *list = group.memories;
    group_memory *m = append(&list, &group.memory_count, sizeof *m);
    group.memories = list;
    if (m == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while adding a call to a group");
    *m = (group_memory){comm, memory, stream};
    return RING_OK;
}

/* If the start has failed, the communicator is freed. */
static ncclResult_t await_start(ncclComm_t comm)
{
    ring_comm_info info = {.size = sizeof info};
    const ncclResult_t result = nccl_result(ring_comm_get_info(comm->ring, &info)); /* it waits */
    if (result != ncclSuccess)
        nccl_free(comm);
    else
        atomic_store(&comm->ready, true);
    return result;
}

static ncclResult_t await_starts(void)
{
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < group.start_count; i++) {
        const group_start *s = &group.starts[i];
        const ncclResult_t own = s->comm->blocking ? await_start(s->comm) : ncclInProgress;
        if (own != ncclSuccess && own != ncclInProgress)
            *s->out = NULL;
        if (result == ncclSuccess || result == ncclInProgress)
            result = own != ncclSuccess ? own : result;
    }
    return result;
}

static void free_memories(void)
{
    const cuda_driver *api = group.memory_count > 0 ? cuda_driver_load() : NULL;
    for (int i = 0; i < group.memory_count; i++) {
        const group_memory *m = &group.memories[i];
        CUcontext old;
        (void)api->push_current(m->comm->context);
        (void)api->mem_free_async(m->memory, m->stream);
        (void)api->pop_current(&old);
    }
}

/* Ends the outermost level. @param drops  the calls are not made. */
static ncclResult_t end(bool drops)
{
    const ncclResult_t noted = group.result;
    ncclResult_t result = ncclSuccess;
    if (group.open)
        result = nccl_result(drops || noted != ncclSuccess ? ring_group_drop() : ring_group_end());
    free_memories();
    const ncclResult_t started = await_starts();
    free(group.starts);
    free(group.memories);
    memset(&group, 0, sizeof group);
    return noted != ncclSuccess ? noted : result != ncclSuccess ? result : started;
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
