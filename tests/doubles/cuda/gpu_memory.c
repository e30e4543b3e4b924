/* SPDX-License-Identifier: Apache-2.0
 * Allocations of device, pinned and managed memory. Freed memory may be allocated again at once,
 * with another buffer id. */
#include "gpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { POISON = 0xdb };
static const size_t most_poison = (size_t)1 << 20;

/* ---- The table, ordered by address ---- */

/* @return the index of the first allocation that starts above @p at. */
static int first_above(uintptr_t at)
{
    int low = 0, high = gpu->allocation_count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (gpu->allocations[middle].start > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

allocation *allocation_find(uintptr_t at)
{
    const int i = first_above(at) - 1;
    allocation *a = i >= 0 ? &gpu->allocations[i] : NULL;
    return a != NULL && at - a->start < a->bytes ? a : NULL;
}

allocation *allocation_insert(uintptr_t start, size_t bytes)
{
    const int i = first_above(start);
    allocation *a = &gpu->allocations[i];
    if (gpu->allocation_count == MOST_ALLOCATIONS)
        misuse("too many allocations");
    memmove(a + 1, a, (size_t)(gpu->allocation_count - i) * sizeof *a);
    gpu->allocation_count++;
    *a = (allocation){.start = start, .bytes = bytes, .id = ++gpu->ids, .file = -1, .uses = 1};
    return a;
}

void allocation_remove(allocation *a)
{
    allocation *end = gpu->allocations + gpu->allocation_count--;
    memmove(a, a + 1, (size_t)(end - a - 1) * sizeof *a);
}

allocation allocation_at(uintptr_t at)
{
    gpu_lock();
    const allocation *a = allocation_find(at);
    const allocation copy = a != NULL ? *a : (allocation){.uses = 0};
    gpu_unlock();
    return copy;
}

CUresult allocation_unmap(const allocation *a)
{
    if (!gpu_map(&(map_request){.at = (void *)page_of(a->start),
                                .bytes = page_bytes(a->start, a->bytes),
                                .file = -1,
                                .device = -1}))
        return CUDA_ERROR_MAP_FAILED;
    close(a->file);
    gpu_lock();
    allocation_remove(allocation_find(a->start));
    gpu_unlock();
    return 0;
}

static uintptr_t aligned(uintptr_t at, size_t alignment, size_t skew)
{
    return (at - skew + alignment - 1) / alignment * alignment + skew;
}

/* Takes the first gap that is wide enough. */
allocation *allocation_place(const area *in, size_t bytes, size_t alignment, size_t skew)
{
    const uintptr_t end = (uintptr_t)in->start + AREA_BYTES;
    uintptr_t start = aligned((uintptr_t)in->start + ALIGNMENT, alignment, skew);
    for (int i = first_above((uintptr_t)in->start); i < gpu->allocation_count; i++) {
        const allocation *a = &gpu->allocations[i];
        if (a->start >= end || (a->start >= start && a->start - start >= bytes))
            break;
        if (a->start + a->bytes > start)
            start = aligned(a->start + a->bytes, alignment, skew);
    }
    return start < end && end - start >= bytes ? allocation_insert(start, bytes) : NULL;
}

/* ---- Contents ---- */

static const area *area_with(const allocation *a)
{
    if (a->kind == MEMORY_DEVICE)
        return &gpu_is.memory[a->device];
    return a->kind == MEMORY_PINNED || a->kind == MEMORY_MANAGED || a->kind == MEMORY_STAGING
               ? &gpu_is.pinned
               : NULL;
}

static char *window_of(const allocation *a, uintptr_t at)
{
    const area *in = area_with(a);
    if (in != NULL)
        return in->window + (at - (uintptr_t)in->start);
    return a->kind == MEMORY_REGISTERED ? (char *)at : NULL;
}

/* Fills the first bytes of an allocation, so that no program relies on zeros. The other pages are
 * given back to the system if @p all. */
static void poison(const allocation *a, bool all)
{
    const area *in = area_with(a);
    char *at = window_of(a, a->start);
    const size_t first = a->bytes < most_poison ? a->bytes : most_poison;
    memset(at, POISON, first);
    const size_t gone = (size_t)(at + first - in->window) / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES;
    const size_t end = (size_t)(at + a->bytes - in->window) / PAGE_BYTES * PAGE_BYTES;
    if (all && end > gone)
        fallocate(in->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)gone,
                  (off_t)(end - gone));
}

void allocation_free(allocation *a)
{
    poison(a, true);
    allocation_remove(a);
}

/* @return the start of the allocation; 0 if there is no room. */
static uintptr_t new_allocation(const area *in, memory_kind kind, int device, size_t bytes,
                                unsigned flags)
{
    const bool of_device = kind == MEMORY_DEVICE;
    const size_t alignment = of_device && bytes < LARGE ? ALIGNMENT
                             : of_device                ? LARGE
                                                        : PAGE_BYTES;
    gpu_lock();
    allocation *a = allocation_place(in, bytes, alignment, 0);
    uintptr_t start = 0;
    if (a != NULL) {
        a->kind = kind;
        a->device = device;
        a->flags = flags;
        start = a->start;
        poison(a, false);
    }
    gpu_unlock();
    return start;
}

static CUresult take(memory_kind kind, size_t bytes, unsigned flags, CUdeviceptr *out)
{
    int device;
    TRY(device_here(&device));
    TRY(capture_forbids());
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (kind == MEMORY_DEVICE && bytes > gpu_is.most_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (kind == MEMORY_DEVICE && gpu_is.alloc_drains)
        TRY(gpu_drain(device));
    const area *in = kind == MEMORY_DEVICE ? &gpu_is.memory[device] : &gpu_is.pinned;
    *out = new_allocation(in, kind, device, bytes, flags);
    return *out != 0 ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Frees an allocation of one of two kinds. */
static CUresult give_back(uintptr_t at, memory_kind kind, memory_kind or_kind)
{
    int device;
    TRY(device_here(&device));
    TRY(capture_forbids());
    TRY(gpu_drain(device));
    gpu_lock();
    allocation *a = allocation_find(at);
    const bool is_one = a != NULL && a->start == at && !a->freeing &&
                        (a->kind == kind || a->kind == or_kind);
    if (is_one)
        allocation_free(a);
    gpu_unlock();
    return is_one ? 0 : CUDA_ERROR_INVALID_VALUE;
}

/* Does not wait for ops that are appended meanwhile. */
CUresult gpu_drain(int device)
{
    host_wait w = host_wait_begin(-1, "until the driver's lock is free");
    uint64_t asked[MOST_STREAMS];
    gpu_lock();
    while (gpu_is.drain_locks && !driver_lock_is_free() && gpu->error == 0)
        host_wait_on(&w);
    if (gpu_is.drain_locks)
        driver_lock_take(-1);
    for (int i = 0; i < MOST_STREAMS; i++)
        asked[i] = gpu->streams[i].asked;
    w.what = "until its ops have ended, since the call waits for all streams";
    for (int i = 0; i < MOST_STREAMS; i++) {
        const gpu_stream *s = &gpu->streams[i];
        w.stream = i;
        while (s->done < asked[i] && (s->device == device || i == 0) && gpu->error == 0)
            host_wait_on(&w);
    }
    driver_lock_give();
    gpu_unlock();
    return gpu->error;
}

/* ---- Calls ---- */

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    ENTER();
    return take(MEMORY_DEVICE, bytes, 0, out);
}

CUresult cuMemFree_v2(CUdeviceptr memory)
{
    ENTER();
    return memory == 0 ? 0 : give_back(memory, MEMORY_DEVICE, MEMORY_MANAGED);
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags)
{
    ENTER();
    if (flags != 1 && flags != 2) /* attached to all streams, or to none yet */
        return CUDA_ERROR_INVALID_VALUE;
    return take(MEMORY_MANAGED, bytes, flags, out);
}

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    CUdeviceptr memory;
    ENTER();
    TRY(take(MEMORY_PINNED, bytes, flags, &memory));
    *out = (void *)(uintptr_t)memory;
    return 0;
}

CUresult cuMemFreeHost(void *memory)
{
    ENTER();
    return give_back((uintptr_t)memory, MEMORY_PINNED, MEMORY_PINNED);
}

/* The address is assigned at once, since ops that use the memory run later. */
CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream handle)
{
    int slot;
    ENTER();
    TRY(stream_find(handle, &slot));
    TRY(capture_refuses(slot));
    if (bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    const int device = gpu->streams[slot].device;
    *out = new_allocation(&gpu_is.memory[device], MEMORY_DEVICE, device, bytes, 0);
    if (*out == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    allocation_find(*out)->pooled = true;
    gpu_unlock();
    return 0;
}

CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream handle)
{
    int slot;
    ENTER();
    TRY(stream_find(handle, &slot));
    TRY(capture_refuses(slot));
    gpu_lock();
    allocation *a = allocation_find(memory);
    const bool is_one = a != NULL && a->start == memory && a->kind == MEMORY_DEVICE && !a->freeing;
    if (is_one)
        a->freeing = true;
    gpu_unlock();
    return is_one ? stream_put(slot, &(op){.kind = OP_FREE, .to = memory})
                  : CUDA_ERROR_INVALID_VALUE;
}

uintptr_t staging_new(size_t bytes)
{
    const uintptr_t start = new_allocation(&gpu_is.pinned, MEMORY_STAGING, 0, bytes, 0);
    if (start == 0)
        misuse("no memory");
    return start;
}

/* ---- For tests ---- */

void *fake_cuda_alloc(size_t bytes)
{
    gpu_start();
    gpu_lock();
    allocation *a = allocation_place(&gpu_is.memory[0], bytes, PAGE_BYTES, ALIGNMENT);
    if (a == NULL)
        misuse("no memory");
    void *start = (void *)a->start;
    gpu_unlock();
    return start;
}

void fake_cuda_free(void *memory)
{
    gpu_lock();
    allocation *a = allocation_find((uintptr_t)memory);
    if (a == NULL || a->kind != MEMORY_DEVICE)
        misuse("fake_cuda_free() of memory that fake_cuda_alloc() did not return");
    allocation_free(a);
    gpu_unlock();
}

unsigned char *fake_cuda_at(void *memory)
{
    gpu_lock();
    const allocation *a = allocation_find((uintptr_t)memory);
    unsigned char *at = a != NULL ? (unsigned char *)window_of(a, (uintptr_t)memory) : NULL;
    gpu_unlock();
    if (at == NULL)
        misuse("fake_cuda_at() of memory that is mapped piece by piece or another process's");
    return at;
}

/* Memory without a window is accessed through its file. */
static void transfer(uintptr_t at, void *host, size_t bytes, bool to_device)
{
    gpu_lock();
    const allocation *a = allocation_find(at);
    if (a == NULL || at - a->start + bytes > a->bytes)
        misuse("a test accesses bytes outside of any allocation");
    char *window = window_of(a, at);
    const off_t offset = (off_t)(a->offset + (at - a->start));
    ssize_t done = (ssize_t)bytes;
    if (window != NULL && to_device)
        memcpy(window, host, bytes);
    else if (window != NULL)
        memcpy(host, window, bytes);
    else
        done = to_device ? pwrite(a->file, host, bytes, offset)
                         : pread(a->file, host, bytes, offset);
    gpu_unlock();
    if (done != (ssize_t)bytes)
        misuse("a test cannot access this mapped memory");
}

void fake_cuda_read(void *dst, const void *memory, size_t bytes)
{
    transfer((uintptr_t)memory, dst, bytes, false);
}

void fake_cuda_write(void *memory, const void *src, size_t bytes)
{
    transfer((uintptr_t)memory, (void *)(uintptr_t)src, bytes, true);
}
