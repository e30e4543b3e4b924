/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_driver: the functions of NVIDIA's driver library that are used here, loaded when they are
 * first asked for, so that one build runs with and without it. Names and numbers are those of the
 * CUDA driver API; what is not used is not declared.
 */
#ifndef RING_CUDA_DRIVER_H
#define RING_CUDA_DRIVER_H

#include "base.h"

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;

enum {
    CUDA_SUCCESS = 0,

    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING = 118,
    CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED = 124,

    CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST = 1,
    CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER = 100,
    CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX = 0,
    CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER = 100,

    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
    CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1
};

/** One row a function: name in the library, without "cu", and here; parameters. */
#define CUDA_FUNCTIONS(ROW) \
    ROW(Init, init, (unsigned flags)) \
    ROW(GetErrorString, get_error_string, (CUresult error, const char **text)) \
    ROW(DeviceGet, device_get, (CUdevice * out, int ordinal)) \
    ROW(DeviceGetAttribute, device_get_attribute, (int *out, int attribute, CUdevice device)) \
    ROW(DeviceGetPCIBusId, device_get_pci_bus_id, (char *out, int size, CUdevice device)) \
    ROW(DevicePrimaryCtxRetain, primary_retain, (CUcontext * out, CUdevice device)) \
    ROW(DevicePrimaryCtxRelease_v2, primary_release, (CUdevice device)) \
    ROW(CtxPushCurrent_v2, push_current, (CUcontext context)) \
    ROW(CtxPopCurrent_v2, pop_current, (CUcontext * out)) \
    ROW(PointerSetAttribute, pointer_set_attribute, \
        (const void *value, int attribute, CUdeviceptr memory))

/** Those that older drivers lack: NULL then. */
#define CUDA_OPTIONAL(ROW) \
    ROW(FlushGPUDirectRDMAWrites, flush_writes, (int target, int scope)) \
    ROW(MemGetHandleForAddressRange, get_range_handle, \
        (void *out, CUdeviceptr memory, size_t bytes, int type, unsigned long long flags))

typedef struct cuda_driver {
#define ROW(name, member, parameters) CUresult(*member) parameters;
    CUDA_FUNCTIONS(ROW)
    CUDA_OPTIONAL(ROW)
#undef ROW
} cuda_driver;

/** @return the functions, NULL with fail() called if the driver is not there, too old, or sees no
 *  GPU. Loaded once a process, and kept. */
const cuda_driver *cuda_driver_load(void);

/** @return RING_OK, or RING_ERR_SYSTEM with what the driver says of @p result.
 *  @param what  was done, for the text. */
ring_status cuda_check(CUresult result, const char *what);

#endif
