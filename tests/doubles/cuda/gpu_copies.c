/* SPDX-License-Identifier: Apache-2.0
 * Copies and fills. Memory of the host that is not pinned goes through some that is, and the call
 * waits then. */
#include "gpu.h"

#include <string.h>

static bool is_known(uintptr_t at)
{
    return allocation_at(at).uses > 0;
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
    return ticket_wait(slot, stream_append(slot, (const op *const[]){&o}, 1));
}

static CUresult copy_staged(int slot, uintptr_t to, uintptr_t from, size_t bytes)
{
    const bool to_known = is_known(to), from_known = is_known(from);
    const uintptr_t staging = staging_new(bytes);
    if (!from_known)
        memcpy((void *)staging, (const void *)from, bytes);
    const CUresult result = run(slot, to_known ? to : staging, from_known ? from : staging, bytes);
    if (!to_known && result == 0)
        memcpy((void *)to, (const void *)staging, bytes);
    end_staging(staging);
    return result;
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
        return copy_staged(slot, to, from, bytes);
    }
    if (wait) {
        TRY(capture_forbids_legacy(slot));
        return run(slot, to, from, bytes);
    }
    return stream_put(slot, &(op){.kind = OP_COPY, .to = to, .from = from, .bytes = bytes});
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

static CUresult fill(CUstream stream, CUdeviceptr dst, unsigned value, size_t count, unsigned width)
{
    int slot;
    TRY(stream_find(stream, &slot));
    if (count == 0)
        return 0;
    if (!is_known(dst) || dst % width != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return stream_put(
        slot,
        &(op){.kind = OP_SET, .to = dst, .value = value, .bytes = count * width, .width = width});
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
    ENTER();
    return fill(stream, dst, value, count, 1);
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream)
{
    ENTER();
    return fill(stream, dst, value, count, 4);
}
