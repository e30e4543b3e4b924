/* SPDX-License-Identifier: Apache-2.0
 * Copies and fills. Memory of the host that is not pinned is copied through pinned memory. With
 * FAKE_CUDA_LATE, calls return before the memory of the device has been written, as NVIDIA's do:
 * a copy is ordered only in its stream. */
#include "gpu.h"

#include <string.h>

/* The driver copies larger pageable memory only when its stream has come to the copy. */
enum { MOST_AT_ONCE = 64 << 10 };

static bool is_known(uintptr_t at)
{
    return allocation_at(at).uses > 0;
}

static bool is_of_device(const allocation *a)
{
    return a->kind == MEMORY_DEVICE || a->kind == MEMORY_MAPPED || a->kind == MEMORY_IMPORTED;
}

static void end_staging(uintptr_t staging)
{
    gpu_lock();
    allocation_free(allocation_find(staging));
    gpu_unlock();
}

static CUresult run(int slot, uint64_t to, uint64_t from, size_t bytes)
{
    const op o = {.kind = OP_COPY, .to = to, .from = from, .bytes = bytes};
    return ticket_wait(slot, stream_append(slot, (const op *const[]){&o}, 1, APPEND_CALL));
}

/* The device's copy is late, and the stream frees the staging memory after it. */
static CUresult copy_later(int slot, uintptr_t to, uintptr_t from, size_t bytes)
{
    if (bytes > MOST_AT_ONCE)
        TRY(ticket_wait(slot, stream_asked(slot)));
    const uintptr_t staging = staging_new(bytes);
    memcpy((void *)staging, (const void *)from, bytes);
    const op o = {.kind = OP_COPY, .to = to, .from = staging, .bytes = bytes, .late = true};
    const op end = {.kind = OP_FREE, .to = staging};
    (void)stream_append(slot, (const op *const[]){&o, &end}, 2, APPEND_CALL);
    return 0;
}

/* Memory may ask for synchronous copies (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), but the copies of
 * asynchronous calls stay late. */
static CUresult copy_staged(int slot, uintptr_t to, uintptr_t from, size_t bytes, bool wait)
{
    const allocation target = allocation_at(to);
    const bool to_known = target.uses > 0, from_known = is_known(from);
    if (gpu_is.late && to_known && is_of_device(&target) && !(wait && target.synchronous))
        return copy_later(slot, to, from, bytes);
    const uintptr_t staging = staging_new(bytes);
    if (!from_known)
        memcpy((void *)staging, (const void *)from, bytes);
    const CUresult result = run(slot, to_known ? to : staging, from_known ? from : staging, bytes);
    if (!to_known && result == 0)
        memcpy((void *)to, (const void *)staging, bytes);
    end_staging(staging);
    return result;
}

static bool may_be_late(uintptr_t to, uintptr_t from)
{
    const allocation target = allocation_at(to), source = allocation_at(from);
    return gpu_is.late && is_of_device(&target) && is_of_device(&source) && !target.synchronous &&
           !source.synchronous;
}

static CUresult copy(CUstream stream, uintptr_t to, uintptr_t from, size_t bytes, bool wait)
{
    int slot;
    TRY(stream_find(stream, &slot));
    if (bytes == 0)
        return 0;
    const bool staged = !is_known(to) || !is_known(from);
    if (staged) {
        TRY(capture_refuses(slot));
        TRY(capture_forbids_legacy(slot));
        return copy_staged(slot, to, from, bytes, wait);
    }
    const bool late = may_be_late(to, from);
    if (wait && !late) {
        TRY(capture_forbids_legacy(slot));
        return run(slot, to, from, bytes);
    }
    return stream_put(
        slot, &(op){.kind = OP_COPY, .to = to, .from = from, .bytes = bytes, .late = wait && late});
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    ENTER();
    TRY(capture_forbids());
    return copy(NULL, dst, src, bytes, true);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    ENTER();
    return copy(stream, dst, src, bytes, false);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
    ENTER();
    return is_known(src) ? copy(stream, (uintptr_t)dst, src, bytes, false)
                         : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
    ENTER();
    return is_known(dst) ? copy(stream, dst, (uintptr_t)src, bytes, false)
                         : CUDA_ERROR_INVALID_VALUE;
}

/* Only memory of the host is waited for, and memory that asks for it. */
static CUresult fill(CUstream stream, CUdeviceptr dst, unsigned value, size_t count, unsigned width,
                     bool wait)
{
    int slot;
    TRY(stream_find(stream, &slot));
    if (count == 0)
        return 0;
    if (!is_known(dst) || dst % width != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const bool late = may_be_late(dst, dst);
    TRY(stream_put(slot, &(op){.kind = OP_SET,
                               .to = dst,
                               .value = value,
                               .bytes = count * width,
                               .width = width,
                               .late = late}));
    return wait && !late ? ticket_wait(slot, stream_asked(slot)) : 0;
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
    ENTER();
    return fill(stream, dst, value, count, 1, false);
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream)
{
    ENTER();
    return fill(stream, dst, value, count, 4, false);
}

CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count)
{
    ENTER();
    TRY(capture_forbids());
    return fill(NULL, dst, value, count, 1, true);
}

CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned value, size_t count)
{
    ENTER();
    TRY(capture_forbids());
    return fill(NULL, dst, value, count, 4, true);
}
