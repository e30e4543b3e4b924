/* SPDX-License-Identifier: Apache-2.0
 * Attributes of pointers, dma-bufs. */
#include "gpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_host(const allocation *a)
{
    return a->kind == MEMORY_PINNED || a->kind == MEMORY_REGISTERED;
}

static bool is_ipc_capable(const allocation *a)
{
    return a->kind == MEMORY_DEVICE && !a->pooled;
}

/* @return its bytes; 0: it has none. */
static size_t value_of(int attribute, const allocation *a, uintptr_t at, uint64_t *out)
{
    static char pools[MOST_DEVICES];
    const bool known = a->uses > 0;
    const bool touched = known && (is_host(a) || a->kind == MEMORY_MANAGED);
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *out = known ? (uintptr_t)context_of(a->device) : 0;
        return sizeof(CUcontext);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *out = !known ? 0 : is_host(a) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return sizeof(unsigned);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *out = known ? at : 0;
        return sizeof(CUdeviceptr);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *out = touched ? at : 0;
        return sizeof(void *);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *out = a->synchronous;
        return sizeof(unsigned);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *out = a->id;
        return sizeof(uint64_t);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *out = known && a->kind == MEMORY_MANAGED;
        return sizeof(unsigned);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *out = (unsigned)(known ? a->device : -2);
        return sizeof(int);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *out = known && is_ipc_capable(a);
        return sizeof(unsigned);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *out = a->start;
        return sizeof(CUdeviceptr);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *out = a->bytes;
        return sizeof(size_t);
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *out = known;
        return sizeof(unsigned);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *out = a->pooled ? (uintptr_t)&pools[a->device] : 0;
        return sizeof(void *);
    default:
        return 0;
    }
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr memory)
{
    uint64_t value = 0;
    ENTER();
    const allocation a = allocation_at(memory);
    const size_t bytes = value_of(attribute, &a, memory, &value);
    if (a.uses == 0 || bytes == 0 || (value == 0 && attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(out, &value, bytes); /* its low bytes */
    return 0;
}

/* Of memory that CUDA does not know it says so by zeros. */
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **outs,
                                CUdeviceptr memory)
{
    ENTER();
    const allocation a = allocation_at(memory);
    for (unsigned i = 0; i < count; i++) {
        uint64_t value = 0;
        const size_t bytes = value_of(attributes[i], &a, memory, &value);
        memcpy(outs[i], &value, bytes);
    }
    return 0;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr memory)
{
    ENTER();
    gpu_lock();
    allocation *a = allocation_find(memory);
    const bool can = a != NULL && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
    if (can) {
        a->synchronous = *(const unsigned *)value != 0;
        call_count(&call_counts.sync_memops, a->synchronous);
    }
    gpu_unlock();
    return can ? 0 : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *bytes, CUdeviceptr memory)
{
    ENTER();
    const allocation a = allocation_at(memory);
    if (a.uses == 0)
        return CUDA_ERROR_NOT_FOUND;
    if (start != NULL)
        *start = a.start;
    if (bytes != NULL)
        *bytes = a.bytes;
    return 0;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *memory, unsigned flags)
{
    ENTER();
    const allocation a = allocation_at((uintptr_t)memory);
    *out = (uintptr_t)memory;
    return a.uses > 0 && is_host(&a) && flags == 0 ? 0 : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostGetFlags(unsigned *out, void *memory)
{
    ENTER();
    const allocation a = allocation_at((uintptr_t)memory);
    *out = a.flags;
    return a.uses > 0 && is_host(&a) ? 0 : CUDA_ERROR_INVALID_VALUE;
}

/* The file begins at the descriptor's position: fake_ibverbs maps from there. */
static int dmabuf_of(const allocation *a, uintptr_t at)
{
    char path[32];
    const area *in = &gpu_is.memory[a->device];
    const bool of_area = a->kind == MEMORY_DEVICE;
    snprintf(path, sizeof path, "/proc/self/fd/%d", of_area ? in->file : a->file);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    const uint64_t offset = of_area ? at - (uintptr_t)in->start : a->offset + (at - a->start);
    if (file < 0 || lseek(file, (off_t)offset, SEEK_SET) < 0)
        misuse("no descriptor");
    return file;
}

/* An allocation in whose pages the range lies; they may have several, of which one that was made
 * ready is meant. */
static const allocation *range_owner(uintptr_t at, size_t bytes)
{
    const allocation *found = NULL;
    for (int i = 0; i < gpu->allocation_count; i++) {
        const allocation *a = &gpu->allocations[i];
        const uintptr_t first = a->start / PAGE_BYTES * PAGE_BYTES;
        const uintptr_t end = (a->start + a->bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        const bool of_device = a->kind == MEMORY_DEVICE || a->kind == MEMORY_MAPPED;
        if (of_device && at >= first && at + bytes <= end && (found == NULL || a->synchronous))
            found = a;
    }
    return found;
}

CUresult cuMemGetHandleForAddressRange(void *out, CUdeviceptr memory, size_t bytes,
                                       CUmemRangeHandleType type, unsigned long long flags)
{
    call_count(&call_counts.handles, 1);
    call_counts.range = memory;
    call_counts.range_bytes = bytes;
    ENTER();
    if (device_attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) == 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    gpu_lock();
    const allocation *a = range_owner(memory, bytes);
    const bool can = a != NULL && memory % PAGE_BYTES == 0 && bytes % PAGE_BYTES == 0 &&
                     type == CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD && flags == 0;
    if (can && !a->synchronous)
        misuse("a handle of memory whose copies are not synchronous");
    if (can)
        *(int *)out = dmabuf_of(a, memory);
    gpu_unlock();
    return can ? 0 : CUDA_ERROR_INVALID_VALUE;
}
