/* SPDX-License-Identifier: Apache-2.0
 * The part of the driver API that tests alone use: rows as in cuda_driver.h. */
#ifndef TEST_DOUBLES_FAKE_CUDA_API_H
#define TEST_DOUBLES_FAKE_CUDA_API_H

#include "cuda_driver.h"

#define TEST_CUDA_CONSTANTS(ROW) \
    ROW(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902) \
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903) \
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904) \
    ROW(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905) \
    ROW(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)

#define TEST_CUDA_TYPES(ROW) \
    ROW(CUmemGenericAllocationHandle, unsigned long long) \
    ROW(CUmemAllocationType, int) \
    ROW(CUmemAllocationHandleType, int) \
    ROW(CUmemLocationType, int) \
    ROW(CUmemAccess_flags, int) \
    ROW(CUmemAllocationGranularity_flags, int) \
    ROW( \
        CUmemLocation, struct { \
            CUmemLocationType type; \
            int id; \
        }) \
    ROW( \
        CUmemAccessDesc, struct { \
            CUmemLocation location; \
            CUmemAccess_flags flags; \
        }) \
    ROW( \
        CUmemAllocationProp, struct { \
            CUmemAllocationType type; \
            CUmemAllocationHandleType requestedHandleTypes; \
            CUmemLocation location; \
            void *win32HandleMetaData; \
            struct { \
                unsigned char compressionType; \
                unsigned char gpuDirectRDMACapable; \
                unsigned short usage; \
                unsigned char reserved[4]; \
            } allocFlags; \
        })

#ifndef __cuda_cuda_h__
#define ROW(name, type) typedef __typeof__(type) name;
TEST_CUDA_TYPES(ROW)
#undef ROW

enum {
#define ROW(name, value) name = (value),
    TEST_CUDA_CONSTANTS(ROW)
#undef ROW
};
#endif

#define TEST_CUDA_FUNCTIONS(ROW) \
    ROW(MemsetD8_v2, set_bytes, (CUdeviceptr dst, unsigned char value, size_t count)) \
    ROW(MemsetD32_v2, set_words, (CUdeviceptr dst, unsigned value, size_t count)) \
    ROW(MemAllocManaged, managed_alloc, (CUdeviceptr * out, size_t bytes, unsigned flags)) \
    ROW(MemHostGetFlags, host_get_flags, (unsigned *out, void *memory)) \
    ROW(MemGetAllocationGranularity, get_granularity, \
        (size_t * out, const CUmemAllocationProp *properties, \
         CUmemAllocationGranularity_flags option)) \
    ROW(MemAddressReserve, reserve, \
        (CUdeviceptr * out, size_t bytes, size_t alignment, CUdeviceptr wish, \
         unsigned long long flags)) \
    ROW(MemAddressFree, unreserve, (CUdeviceptr memory, size_t bytes)) \
    ROW(MemCreate, create, \
        (CUmemGenericAllocationHandle * out, size_t bytes, const CUmemAllocationProp *properties, \
         unsigned long long flags)) \
    ROW(MemRelease, release, (CUmemGenericAllocationHandle handle)) \
    ROW(MemMap, map, \
        (CUdeviceptr memory, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, \
         unsigned long long flags)) \
    ROW(MemUnmap, unmap, (CUdeviceptr memory, size_t bytes)) \
    ROW(MemSetAccess, set_access, \
        (CUdeviceptr memory, size_t bytes, const CUmemAccessDesc *accesses, size_t count)) \
    ROW(MemExportToShareableHandle, export_handle, \
        (void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, \
         unsigned long long flags)) \
    ROW(MemImportFromShareableHandle, import_handle, \
        (CUmemGenericAllocationHandle * out, void *handle, CUmemAllocationHandleType type)) \
    ROW(StreamWriteValue64_v2, stream_write_value64, \
        (CUstream stream, CUdeviceptr at, uint64_t value, unsigned flags)) \
    ROW(StreamWaitValue64_v2, stream_wait_value64, \
        (CUstream stream, CUdeviceptr at, uint64_t value, unsigned flags)) \
    ROW(EventElapsedTime, event_elapsed, (float *ms, CUevent start, CUevent end)) \
    ROW(UserObjectRetain, user_object_retain, (CUuserObject object, unsigned count))

#endif
