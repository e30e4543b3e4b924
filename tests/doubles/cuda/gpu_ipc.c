/* SPDX-License-Identifier: Apache-2.0
 * Memory and events of other processes, opened by their descriptors as long as they live. */
#include "gpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct ipc_handle {
    char magic[8];
    int pid, file, device;
    unsigned flags; /* of events */
    uint64_t offset, bytes, id;
} ipc_handle;

_Static_assert(sizeof(ipc_handle) <= sizeof(CUipcMemHandle), "a handle is 64 bytes");

static const char memory_magic[8] = "FAKEMEM", event_magic[8] = "FAKEEVT";

/* A file of another process at addresses of this one, in the GPU process, and here if @p to_host.
 * @return 0: it is gone. */
static uintptr_t import(const ipc_handle *h, bool to_host, memory_kind kind)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", h->pid, h->file);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    const uint64_t skew = h->offset % PAGE_BYTES, first = h->offset - skew;
    const size_t bytes = page_bytes(h->offset, h->bytes);
    if (file < 0)
        return 0;
    gpu_lock();
    allocation *a = allocation_place(&gpu_is.imported, bytes, PAGE_BYTES, 0);
    if (a == NULL)
        misuse("no addresses");
    a->kind = kind;
    a->file = file;
    a->offset = h->offset;
    a->device = h->device < gpu_is.devices ? h->device : 0;
    a->source = h->pid;
    a->source_id = h->id;
    a->start += skew; /* still the only one of these pages */
    a->bytes = h->bytes;
    const uintptr_t start = a->start;
    gpu_unlock();
    void *at = (void *)(start - skew);
    if (to_host && mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                        (off_t)first) == MAP_FAILED)
        misuse("memory of another process cannot be mapped");
    if (!gpu_map(&(map_request){.at = at,
                                .bytes = bytes,
                                .pid = getpid(),
                                .file = file,
                                .offset = first,
                                .protection = PROT_READ | PROT_WRITE,
                                .device = to_host ? -1 : h->device}))
        misuse("memory of another process cannot be mapped");
    return start;
}

/* As in containers that do not share the host's process numbers or its IPC namespace. */
static CUresult opening_fails(void)
{
    return gpu_is.ipc == IPC_REFUSED         ? CUDA_ERROR_NOT_SUPPORTED
           : gpu_is.ipc == IPC_FAILS_TO_OPEN ? CUDA_ERROR_MAP_FAILED
                                             : 0;
}

/* ---- Memory ---- */

/* Held until memory is mapped or unmapped, so that no other thread takes it for open meanwhile. */
static pthread_mutex_t openings = PTHREAD_MUTEX_INITIALIZER;

CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr memory)
{
    ENTER();
    if (gpu_is.ipc == IPC_REFUSED)
        return CUDA_ERROR_NOT_SUPPORTED;
    const allocation a = allocation_at(memory);
    if (a.uses == 0 || a.kind != MEMORY_DEVICE || a.pooled)
        return CUDA_ERROR_INVALID_VALUE;
    const area *in = &gpu_is.memory[a.device];
    ipc_handle h = {.pid = getpid(),
                    .file = in->file,
                    .device = a.device,
                    .offset = a.start - (uintptr_t)in->start,
                    .bytes = a.bytes,
                    .id = a.id};
    memcpy(h.magic, memory_magic, sizeof h.magic);
    *out = (CUipcMemHandle){{0}};
    memcpy(out, &h, sizeof h);
    return 0;
}

/* @return the start of what was opened before. */
static uintptr_t opened_before(const ipc_handle *h)
{
    uintptr_t start = 0;
    gpu_lock();
    for (int i = 0; i < gpu->allocation_count; i++) {
        allocation *a = &gpu->allocations[i];
        if (a->kind == MEMORY_IMPORTED && a->source == h->pid && a->source_id == h->id) {
            a->uses++;
            start = a->start;
        }
    }
    gpu_unlock();
    return start;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags)
{
    ipc_handle h;
    int device;
    ENTER();
    TRY(device_here(&device));
    TRY(capture_forbids());
    TRY(opening_fails());
    memcpy(&h, &handle, sizeof h);
    if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (memcmp(h.magic, memory_magic, sizeof h.magic) != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (h.pid == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&openings);
    *out = opened_before(&h);
    if (*out == 0)
        *out = import(&h, false, MEMORY_IMPORTED);
    pthread_mutex_unlock(&openings);
    return *out != 0 ? 0 : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult close_memory(CUdeviceptr memory)
{
    gpu_lock();
    allocation *a = allocation_find(memory);
    const bool is_one = a != NULL && a->kind == MEMORY_IMPORTED && a->start == memory;
    const bool last = is_one && --a->uses == 0;
    const allocation copy = is_one ? *a : (allocation){.bytes = 0};
    gpu_unlock();
    if (!last)
        return is_one ? 0 : CUDA_ERROR_INVALID_VALUE;
    return allocation_unmap(&copy);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr memory)
{
    int device;
    ENTER();
    TRY(device_here(&device));
    TRY(gpu_drain(device));
    pthread_mutex_lock(&openings);
    const CUresult result = close_memory(memory);
    pthread_mutex_unlock(&openings);
    return result;
}

/* ---- Events ---- */

CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent handle)
{
    ENTER();
    if (gpu_is.ipc == IPC_REFUSED)
        return CUDA_ERROR_NOT_SUPPORTED;
    const gpu_event *e = event_find(handle);
    if (e == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (e->cell == NULL || allocation_at((uintptr_t)e->cell).file >= 0) /* another process's */
        return CUDA_ERROR_INVALID_VALUE;
    ipc_handle h = {.pid = getpid(),
                    .file = gpu_is.pinned.file,
                    .device = e->device,
                    .flags = e->flags,
                    .bytes = 2 * sizeof *e->cell};
    h.offset = (uint64_t)((char *)e->cell - gpu_is.pinned.start);
    memcpy(h.magic, event_magic, sizeof h.magic);
    *out = (CUipcEventHandle){{0}};
    memcpy(out, &h, sizeof h);
    return 0;
}

CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle)
{
    ipc_handle h;
    int device;
    ENTER();
    TRY(device_here(&device));
    TRY(opening_fails());
    memcpy(&h, &handle, sizeof h);
    if (memcmp(h.magic, event_magic, sizeof h.magic) != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (h.pid == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    const uintptr_t cell = import(&h, true, MEMORY_STAGING);
    if (cell == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    gpu_event *e = event_new(device, h.flags);
    e->cell = (uint64_t *)cell;
    *out = object_add(OBJECT_EVENT, e);
    return 0;
}
