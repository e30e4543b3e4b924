/* SPDX-License-Identifier: Apache-2.0
 * NCCL's communicators over libring's: starts, derived communicators, ends and queries. NCCL knows
 * no deadlines, holds streams at errors, and lets ranks exit without a word, so communicators have
 * these settings of libring, unless the environment says otherwise. */
#include "nccl_comm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(ncclUniqueId) == sizeof(ring_unique_id), "ids are passed on unchanged");

/* ---- Options ------------------------------------------------------------------------------- */

enum { MOST_SETTINGS = 8, SETTING_BYTES = 80 };

typedef struct options {
    bool blocking;
    int count;
    char texts[MOST_SETTINGS][SETTING_BYTES];
    const char *settings[MOST_SETTINGS + 1];
} options;

static void add_setting(options *o, const char *name, const char *value)
{
    text_format(o->texts[o->count], SETTING_BYTES, "%s=%s", name, value);
    o->settings[o->count] = o->texts[o->count];
    o->count++;
}

/* A value of the environment goes before one that NCCL's habits suggest. */
static void add_habit(options *o, const char *name, const char *value)
{
    const char *set = getenv(name);
    if (set == NULL || set[0] == '\0')
        add_setting(o, name, value);
}

/* Older versions of the struct end with padding, so its size does not tell its members. */
#define HAS(config, member, since) \
    ((config)->version >= (since) && \
     (config)->size >= offsetof(ncclConfig_t, member) + sizeof(config)->member)
#define IS_SET(config, member, since) \
    (HAS(config, member, since) && (config)->member != NCCL_CONFIG_UNDEF_INT)

/* Reads the members that the caller's version of the struct has. @param derived  the communicator
 * uses the links of its parent, so its config cannot choose any. */
static ncclResult_t read_config(const ncclConfig_t *c, bool derived, const char *call, options *o)
{
    char number[16];
    if (c == NULL)
        return ncclSuccess;
    if (c->magic != NCCL_CONFIG_MAGIC ||
        c->size < offsetof(ncclConfig_t, blocking) + sizeof c->blocking)
        return nccl_refuse(ncclInvalidArgument,
                           "%s: the config was not initialized by NCCL_CONFIG_INITIALIZER", call);
    if (c->blocking != NCCL_CONFIG_UNDEF_INT && c->blocking != 0 && c->blocking != 1)
        return nccl_refuse(ncclInvalidArgument, "%s: config.blocking is %d; it must be 0 or 1",
                           call, c->blocking);
    o->blocking = c->blocking == NCCL_CONFIG_UNDEF_INT ? o->blocking : c->blocking != 0;
    if (derived)
        return ncclSuccess;
    if (IS_SET(c, maxCTAs, NCCL_VERSION(2, 17, 0))) {
        text_format(number, sizeof number, "%d", c->maxCTAs < 64 ? c->maxCTAs : 64);
        add_setting(o, "RING_DEVICE_BLOCKS", number);
    }
    if (IS_SET(c, trafficClass, NCCL_VERSION(2, 25, 0))) {
        text_format(number, sizeof number, "%d", c->trafficClass);
        add_setting(o, "RING_IB_TC", number);
    }
    if (HAS(c, netName, NCCL_VERSION(2, 17, 0)) && c->netName != NULL)
        add_setting(o, "RING_TRANSPORT",
                    strcmp(c->netName, "Socket") == 0 ? "loop,shm,tcp"
                    : strcmp(c->netName, "IB") == 0   ? "loop,shm,verbs"
                                                      : c->netName);
    return ncclSuccess;
}

/* @param parent  of a derived communicator, which uses the parent's settings; NULL: none. */
static ncclResult_t options_of(const ncclConfig_t *c, ncclComm_t parent, const char *call,
                               options *o)
{
    memset(o, 0, sizeof *o);
    o->blocking = parent == NULL || parent->blocking;
    if (parent == NULL) {
        add_habit(o, "RING_TIMEOUT", "none");
        add_habit(o, "RING_INIT_TIMEOUT", "none");
        add_habit(o, "RING_EXIT", "leave");
        add_habit(o, "RING_HOLD_STREAMS", "1");
    }
    return read_config(c, parent != NULL, call, o);
}

/* ---- Making -------------------------------------------------------------------------------- */

/* Without a context, this thread's device becomes device 0, as with CUDA's runtime.
 * @param[out] context  of the device. @return NULL if it fails. */
static const cuda_driver *enter_device(CUcontext *context, CUdevice *device, const char *call)
{
    const cuda_driver *api = cuda_driver_load();
    ring_status status = api != NULL ? RING_OK : RING_ERR_UNSUPPORTED;
    if (status == RING_OK)
        status = cuda_check(api->get_current(context), "cuCtxGetCurrent");
    if (status == RING_OK && *context == NULL)
        status = cuda_check(api->primary_retain(context, 0), "cuDevicePrimaryCtxRetain");
    if (status == RING_OK)
        status = cuda_check(api->set_current(*context), "cuCtxSetCurrent");
    if (status == RING_OK)
        status = cuda_check(api->get_device(device), "cuCtxGetDevice");
    if (status == RING_OK)
        return api;
    (void)nccl_refuse(ncclUnhandledCudaError, "%s: %s", call, fail_text());
    return NULL;
}

/* A derived communicator has the device of its parent. */
static ncclResult_t comm_new(const options *o, ncclComm_t parent, const char *call, ncclComm_t *out)
{
    ncclComm_t comm = calloc(1, sizeof *comm);
    if (comm == NULL)
        return nccl_refuse(ncclSystemError, "%s: out of memory", call);
    comm->blocking = o->blocking;
    comm->references = 1;
    pthread_mutex_init(&comm->lock, NULL);
    if (parent != NULL) {
        comm->device = parent->device;
        comm->context = parent->context;
    } else if (enter_device(&comm->context, &comm->device, call) == NULL) {
        nccl_release(comm);
        return ncclUnhandledCudaError;
    }
    *out = comm;
    return ncclSuccess;
}

static bool starts_apart(const options *o)
{
    return nccl_group_is_open() || !o->blocking;
}

/* Gives the caller a communicator whose start has begun, or has ended if it blocks. */
static ncclResult_t give(ncclComm_t comm, ring_status status, ncclComm_t *out)
{
    ncclResult_t result = nccl_result(status);
    if (status == RING_OK && nccl_group_is_open())
        result = nccl_group_add_start(comm, out);
    if (result != ncclSuccess) {
        nccl_end(comm, false);
        return result;
    }
    *out = comm;
    if (!comm->blocking)
        return nccl_group_is_open() ? ncclSuccess : ncclInProgress;
    atomic_store(&comm->ready, !nccl_group_is_open());
    return ncclSuccess;
}

static ncclResult_t join(ncclComm_t *out, int size, const ncclUniqueId *id, int rank,
                         const ncclConfig_t *config, const char *call)
{
    options o;
    ncclComm_t comm = NULL;
    ring_config given = RING_CONFIG_INIT;
    if (out == NULL || size < 1 || rank < 0 || rank >= size)
        return nccl_refuse(ncclInvalidArgument,
                           "%s: rank %d of %d; 0 <= rank < size is required, and comm must not be "
                           "NULL",
                           call, rank, size);
    *out = NULL;
    NCCL_TRY(options_of(config, NULL, call, &o));
    NCCL_TRY(comm_new(&o, NULL, call, &comm));
    given.settings = o.settings;
    given.nonblocking = starts_apart(&o);
    return give(comm,
                ring_comm_init_config(&comm->ring, size, (const ring_unique_id *)id, rank, &given),
                out);
}

/* ---- Starts -------------------------------------------------------------------------------- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    options o;
    ring_config given = RING_CONFIG_INIT;
    NCCL_TRY(options_of(NULL, NULL, "ncclGetUniqueId", &o));
    given.settings = o.settings;
    given.any_process = 1;
    return nccl_result(ring_get_unique_id_config((ring_unique_id *)id, &given));
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    return nccl_group_note(join(comm, ranks, &id, rank, NULL, "ncclCommInitRank"));
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    return nccl_group_note(join(comm, ranks, &id, rank, config, "ncclCommInitRankConfig"));
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int ranks, int rank, int id_count,
                                      ncclUniqueId *ids, ncclConfig_t *config)
{
    if (ids == NULL || id_count < 1 || id_count > ranks)
        return nccl_refuse(ncclInvalidArgument,
                           "ncclCommInitRankScalable: %d ids for %d ranks; 1 to %d are possible, "
                           "and ids must not be NULL",
                           id_count, ranks, ranks);
    return nccl_group_note(join(comm, ranks, &ids[0], rank, config, "ncclCommInitRankScalable"));
}

static ncclResult_t use_device(const cuda_driver *api, int device)
{
    CUcontext context;
    ring_status status = cuda_check(api->primary_retain(&context, device),
                                    "cuDevicePrimaryCtxRetain");
    if (status == RING_OK)
        status = cuda_check(api->set_current(context), "cuCtxSetCurrent");
    return status == RING_OK ? ncclSuccess
                             : nccl_refuse(ncclUnhandledCudaError, "ncclCommInitAll: device %d: %s",
                                           device, fail_text());
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    ncclUniqueId id;
    CUcontext before = NULL;
    if (comms == NULL || count < 1)
        return nccl_refuse(ncclInvalidArgument,
                           "ncclCommInitAll: %d communicators; at least 1 is required, and comms "
                           "must not be NULL",
                           count);
    const cuda_driver *api = cuda_driver_load();
    if (api == NULL)
        return nccl_refuse(ncclUnhandledCudaError, "ncclCommInitAll: %s", fail_text());
    (void)api->get_current(&before);
    NCCL_TRY(ncclGetUniqueId(&id));
    NCCL_TRY(ncclGroupStart());
    for (int i = 0; i < count; i++) {
        comms[i] = NULL;
        const ncclResult_t used = use_device(api, devices != NULL ? devices[i] : i);
        nccl_group_note(used);
        if (used == ncclSuccess)
            nccl_group_note(join(&comms[i], count, &id, i, NULL, "ncclCommInitAll"));
    }
    (void)api->set_current(before);
    return ncclGroupEnd();
}

/* ---- Derived communicators ----------------------------------------------------------------- */

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out,
                           ncclConfig_t *config)
{
    options o;
    ncclComm_t part = NULL;
    ring_config given = RING_CONFIG_INIT;
    if (out == NULL || color < NCCL_SPLIT_NOCOLOR)
        return nccl_refuse(ncclInvalidArgument,
                           "ncclCommSplit: color is %d; it must be NCCL_SPLIT_NOCOLOR (-1), or 0 "
                           "or more, and newcomm must not be NULL",
                           color);
    *out = NULL;
    NCCL_TRY(nccl_enter(comm, "ncclCommSplit"));
    ncclResult_t result = options_of(config, comm, "ncclCommSplit", &o);
    if (result == ncclSuccess)
        result = comm_new(&o, comm, "ncclCommSplit", &part);
    if (result == ncclSuccess) {
        given.nonblocking = starts_apart(&o);
        const ring_status status = ring_comm_split_config(comm->ring, color, key, &given,
                                                          &part->ring);
        if (status == RING_OK && part->ring == NULL)
            nccl_end(part, false); /* of no color */
        else
            result = give(part, status, out);
    }
    nccl_leave(comm);
    return nccl_group_note(result);
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int count, ncclComm_t *out,
                            ncclConfig_t *config, int flags)
{
    options o;
    ncclComm_t rest = NULL;
    if (out == NULL || (flags & ~NCCL_SHRINK_ABORT) != 0)
        return nccl_refuse(ncclInvalidArgument,
                           "ncclCommShrink: flags are %#x; they must be NCCL_SHRINK_DEFAULT or "
                           "NCCL_SHRINK_ABORT, and newcomm must not be NULL",
                           (unsigned)flags);
    *out = NULL;
    if (nccl_group_is_open())
        return nccl_group_note(
            nccl_refuse(ncclInvalidUsage, "ncclCommShrink: libring does not support it in a group; "
                                          "call it after ncclGroupEnd()"));
    NCCL_TRY(nccl_enter(comm, "ncclCommShrink"));
    ncclResult_t result = options_of(config, comm, "ncclCommShrink", &o);
    if (result == ncclSuccess)
        result = comm_new(&o, comm, "ncclCommShrink", &rest);
    if (result == ncclSuccess)
        result = give(rest,
                      (flags & NCCL_SHRINK_ABORT) != 0
                          ? ring_comm_exclude_abort(comm->ring, excluded, count, &rest->ring)
                          : ring_comm_exclude(comm->ring, excluded, count, &rest->ring),
                      out);
    nccl_leave(comm);
    return result;
}

/* ---- Ends ---------------------------------------------------------------------------------- */

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    NCCL_TRY(nccl_enter(comm, "ncclCommFinalize"));
    const ring_status status = ring_comm_flush(comm->ring, comm->blocking ? INFINITY : 0);
    atomic_store(&comm->flushes, status == RING_IN_PROGRESS);
    nccl_leave(comm);
    return nccl_result(status);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (comm == NULL)
        return ncclSuccess;
    NCCL_TRY(nccl_enter_any(comm, "ncclCommDestroy"));
    if (ring_comm_status(comm->ring) == RING_OK)
        (void)ring_comm_flush(comm->ring, INFINITY); /* fails with the calls for which it waits */
    atomic_fetch_add(&comm->references, 1); /* an abort in another thread may end it first */
    nccl_leave(comm);
    nccl_end(comm, false);
    nccl_release(comm);
    return ncclSuccess;
}

/* NCCL's abort ends only what this rank does. So peers are told only if calls are under way. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    if (comm == NULL)
        return ncclSuccess;
    NCCL_TRY(nccl_enter_any(comm, "ncclCommAbort"));
    const bool starts = ring_comm_status(comm->ring) == RING_IN_PROGRESS;
    const bool aborts = starts || ring_comm_flush(comm->ring, 0) != RING_OK;
    atomic_fetch_add(&comm->references, 1);
    nccl_leave(comm);
    nccl_end(comm, aborts);
    nccl_release(comm);
    return ncclSuccess;
}

/* ---- Queries ------------------------------------------------------------------------------- */

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    if (error == NULL)
        return nccl_refuse(ncclInvalidArgument, "ncclCommGetAsyncError: asyncError is NULL");
    NCCL_TRY(nccl_enter_any(comm, "ncclCommGetAsyncError"));
    ring_status status = ring_comm_status(comm->ring);
    if (status == RING_OK && atomic_load(&comm->flushes)) {
        status = ring_comm_flush(comm->ring, 0);
        atomic_store(&comm->flushes, status == RING_IN_PROGRESS);
    }
    *error = nccl_result_of(comm->ring, status);
    nccl_leave(comm);
    return ncclSuccess;
}

static ncclResult_t get(ncclComm_t comm, const char *call, int (*value)(const ring_comm *),
                        int *out)
{
    if (out == NULL)
        return nccl_refuse(ncclInvalidArgument, "%s: the pointer for the result is NULL", call);
    NCCL_TRY(nccl_enter(comm, call));
    *out = value != NULL ? value(comm->ring) : comm->device;
    nccl_leave(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    return get(comm, "ncclCommCount", ring_comm_size, count);
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    return get(comm, "ncclCommUserRank", ring_comm_rank, rank);
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    return get(comm, "ncclCommCuDevice", NULL, device);
}

/* ---- Memory -------------------------------------------------------------------------------- */

ncclResult_t ncclMemAlloc(void **memory, size_t bytes)
{
    CUcontext context;
    CUdevice device;
    CUdeviceptr there = 0;
    if (memory == NULL)
        return nccl_refuse(ncclInvalidArgument, "ncclMemAlloc: ptr is NULL");
    *memory = NULL;
    const cuda_driver *api = enter_device(&context, &device, "ncclMemAlloc");
    if (api == NULL)
        return ncclUnhandledCudaError;
    NCCL_TRY(nccl_cuda(api->mem_alloc(&there, bytes), "ncclMemAlloc (cuMemAlloc)"));
    *memory = (void *)(uintptr_t)there;
    return ncclSuccess;
}

ncclResult_t ncclMemFree(void *memory)
{
    CUcontext context;
    CUdevice device;
    const cuda_driver *api = memory != NULL ? enter_device(&context, &device, "ncclMemFree") : NULL;
    if (memory == NULL || api == NULL)
        return memory == NULL ? ncclSuccess : ncclUnhandledCudaError;
    return nccl_cuda(api->mem_free((CUdeviceptr)(uintptr_t)memory), "ncclMemFree (cuMemFree)");
}

/* The handle is the memory, so that it is not NULL and needs no list. */
static ncclResult_t register_memory(ncclComm_t comm, void *memory, void **handle, const char *call)
{
    if (memory == NULL || handle == NULL)
        return nccl_refuse(ncclInvalidArgument, "%s: the memory or the handle is NULL", call);
    NCCL_TRY(nccl_enter(comm, call));
    *handle = memory;
    nccl_leave(comm);
    return ncclSuccess;
}

static ncclResult_t deregister(ncclComm_t comm, const char *call)
{
    NCCL_TRY(nccl_enter_any(comm, call));
    nccl_leave(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes, void **handle)
{
    return register_memory(comm, memory, handle, "ncclCommRegister");
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return deregister(comm, "ncclCommDeregister");
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes,
                                    ncclWindow_t *window, int flags)
{
    return register_memory(comm, memory, (void **)window, "ncclCommWindowRegister");
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    return deregister(comm, "ncclCommWindowDeregister");
}
