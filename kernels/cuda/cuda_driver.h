/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_driver: declares the functions of NVIDIA's driver library that libring uses. The library is
 * loaded at the first use, so one build runs on machines with and without it. Types and constants
 * have the names and values of the CUDA driver API; those that libring does not use are left out.
 */
#ifndef RING_CUDA_DRIVER_H
#define RING_CUDA_DRIVER_H

#include "base.h"

#include <stddef.h>
#include <stdint.h>

/** The types of the API: ROW(name, type here). Its enumerations are ints here. */
#define CUDA_TYPES(ROW) \
    ROW(CUresult, int) \
    ROW(CUdevice, int) \
    ROW(CUdeviceptr, unsigned long long) \
    ROW(CUdevice_attribute, int) \
    ROW(CUfunction_attribute, int) \
    ROW(CUpointer_attribute, int) \
    ROW(CUstreamCaptureMode, int) \
    ROW(CUstreamCaptureStatus, int) \
    ROW(CUmemRangeHandleType, int) \
    ROW(CUflushGPUDirectRDMAWritesTarget, int) \
    ROW(CUflushGPUDirectRDMAWritesScope, int) \
    ROW(CUcontext, struct CUctx_st *) \
    ROW(CUmodule, struct CUmod_st *) \
    ROW(CUfunction, struct CUfunc_st *) \
    ROW(CUstream, struct CUstream_st *) \
    ROW(CUevent, struct CUevent_st *) \
    ROW(CUgraph, struct CUgraph_st *) \
    ROW(CUgraphExec, struct CUgraphExec_st *) \
    ROW(CUgraphNode, struct CUgraphNode_st *) \
    ROW(CUuserObject, struct CUuserObject_st *) \
    ROW(CUhostFn, void (*)(void *)) \
    ROW( \
        CUuuid, struct { char bytes[16]; }) \
    ROW( \
        CUipcMemHandle, struct { char reserved[64]; }) \
    ROW( \
        CUipcEventHandle, struct { char reserved[64]; })

/** The constants of the API: ROW(name, value). */
#define CUDA_CONSTANTS(ROW) \
    ROW(CUDA_SUCCESS, 0) \
    ROW(CUDA_ERROR_INVALID_VALUE, 1) \
    ROW(CUDA_ERROR_OUT_OF_MEMORY, 2) \
    ROW(CUDA_ERROR_NOT_INITIALIZED, 3) \
    ROW(CUDA_ERROR_NO_DEVICE, 100) \
    ROW(CUDA_ERROR_INVALID_DEVICE, 101) \
    ROW(CUDA_ERROR_INVALID_IMAGE, 200) \
    ROW(CUDA_ERROR_INVALID_CONTEXT, 201) \
    ROW(CUDA_ERROR_MAP_FAILED, 205) \
    ROW(CUDA_ERROR_NO_BINARY_FOR_GPU, 209) \
    ROW(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217) \
    ROW(CUDA_ERROR_INVALID_HANDLE, 400) \
    ROW(CUDA_ERROR_NOT_FOUND, 500) \
    ROW(CUDA_ERROR_NOT_READY, 600) \
    ROW(CUDA_ERROR_ILLEGAL_ADDRESS, 700) \
    ROW(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701) \
    ROW(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704) \
    ROW(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709) \
    ROW(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712) \
    ROW(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713) \
    ROW(CUDA_ERROR_LAUNCH_FAILED, 719) \
    ROW(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720) \
    ROW(CUDA_ERROR_NOT_PERMITTED, 800) \
    ROW(CUDA_ERROR_NOT_SUPPORTED, 801) \
    ROW(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900) \
    ROW(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901) \
    ROW(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906) \
    ROW(CUDA_ERROR_CAPTURED_EVENT, 907) \
    ROW(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1) \
    ROW(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16) \
    ROW(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) \
    ROW(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76) \
    ROW(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91) \
    ROW(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 95) \
    ROW(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 99) \
    ROW(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 117) \
    ROW(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 118) \
    ROW(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 124) \
    ROW(CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 133) \
    ROW(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST, 1) \
    ROW(CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER, 100) \
    ROW(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX, 0) \
    ROW(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER, 100) \
    ROW(CU_POINTER_ATTRIBUTE_CONTEXT, 1) \
    ROW(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2) \
    ROW(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3) \
    ROW(CU_POINTER_ATTRIBUTE_HOST_POINTER, 4) \
    ROW(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 6) \
    ROW(CU_POINTER_ATTRIBUTE_BUFFER_ID, 7) \
    ROW(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8) \
    ROW(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9) \
    ROW(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 10) \
    ROW(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11) \
    ROW(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12) \
    ROW(CU_POINTER_ATTRIBUTE_MAPPED, 13) \
    ROW(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 17) \
    ROW(CU_MEMORYTYPE_HOST, 1) \
    ROW(CU_MEMORYTYPE_DEVICE, 2) \
    ROW(CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 1) \
    ROW(CU_MEMHOSTALLOC_PORTABLE, 1) \
    ROW(CU_MEMHOSTALLOC_DEVICEMAP, 2) \
    ROW(CU_MEMHOSTREGISTER_PORTABLE, 1) \
    ROW(CU_MEMHOSTREGISTER_DEVICEMAP, 2) \
    ROW(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, 1) \
    ROW(CU_STREAM_DEFAULT, 0) \
    ROW(CU_STREAM_NON_BLOCKING, 1) \
    ROW(CU_STREAM_WAIT_VALUE_GEQ, 0) \
    ROW(CU_STREAM_WAIT_VALUE_EQ, 1) \
    ROW(CU_STREAM_WAIT_VALUE_AND, 2) \
    ROW(CU_STREAM_WAIT_VALUE_FLUSH, 1 << 30) \
    ROW(CU_STREAM_CAPTURE_STATUS_NONE, 0) \
    ROW(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1) \
    ROW(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2) \
    ROW(CU_STREAM_CAPTURE_MODE_GLOBAL, 0) \
    ROW(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1) \
    ROW(CU_STREAM_CAPTURE_MODE_RELAXED, 2) \
    ROW(CU_EVENT_DEFAULT, 0) \
    ROW(CU_EVENT_BLOCKING_SYNC, 1) \
    ROW(CU_EVENT_DISABLE_TIMING, 2) \
    ROW(CU_EVENT_INTERPROCESS, 4) \
    ROW(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0) \
    ROW(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1) \
    ROW(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8) \
    ROW(CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, 1) \
    ROW(CU_GRAPH_USER_OBJECT_MOVE, 1)

#ifndef __cuda_cuda_h__ /* a test includes NVIDIA's header and compares the two */
#define ROW(name, type) typedef __typeof__(type) name;
CUDA_TYPES(ROW)
#undef ROW

enum {
#define ROW(name, value) name = (value),
    CUDA_CONSTANTS(ROW)
#undef ROW
};
#endif

/** The functions of the API: ROW(name in the library without "cu", name here, parameters). */
#define CUDA_FUNCTIONS(ROW) \
    ROW(Init, init, (unsigned flags)) \
    ROW(DriverGetVersion, driver_version, (int *out)) \
    ROW(GetErrorString, get_error_string, (CUresult error, const char **text)) \
    ROW(GetErrorName, get_error_name, (CUresult error, const char **name)) \
    ROW(DeviceGetCount, device_count, (int *out)) \
    ROW(DeviceGet, device_get, (CUdevice * out, int ordinal)) \
    ROW(DeviceGetName, device_get_name, (char *out, int size, CUdevice device)) \
    ROW(DeviceGetAttribute, device_get_attribute, \
        (int *out, CUdevice_attribute attribute, CUdevice device)) \
    ROW(DeviceGetPCIBusId, device_get_pci_bus_id, (char *out, int size, CUdevice device)) \
    ROW(DeviceGetUuid_v2, device_get_uuid, (CUuuid * out, CUdevice device)) \
    ROW(DeviceTotalMem_v2, device_total_memory, (size_t * out, CUdevice device)) \
    ROW(DeviceCanAccessPeer, device_can_access_peer, (int *out, CUdevice device, CUdevice peer)) \
    ROW(DevicePrimaryCtxRetain, primary_retain, (CUcontext * out, CUdevice device)) \
    ROW(DevicePrimaryCtxRelease_v2, primary_release, (CUdevice device)) \
    ROW(CtxPushCurrent_v2, push_current, (CUcontext context)) \
    ROW(CtxPopCurrent_v2, pop_current, (CUcontext * out)) \
    ROW(CtxGetCurrent, get_current, (CUcontext * out)) \
    ROW(CtxSetCurrent, set_current, (CUcontext context)) \
    ROW(CtxGetDevice, get_device, (CUdevice * out)) \
    ROW(CtxSynchronize, context_synchronize, (void)) \
    ROW(CtxEnablePeerAccess, enable_peer_access, (CUcontext peer, unsigned flags)) \
    ROW(MemAlloc_v2, mem_alloc, (CUdeviceptr * out, size_t bytes)) \
    ROW(MemFree_v2, mem_free, (CUdeviceptr memory)) \
    ROW(MemAllocAsync, mem_alloc_async, (CUdeviceptr * out, size_t bytes, CUstream stream)) \
    ROW(MemFreeAsync, mem_free_async, (CUdeviceptr memory, CUstream stream)) \
    ROW(MemHostAlloc, host_alloc, (void **out, size_t bytes, unsigned flags)) \
    ROW(MemFreeHost, host_free, (void *memory)) \
    ROW(MemHostRegister_v2, host_register, (void *memory, size_t bytes, unsigned flags)) \
    ROW(MemHostUnregister, host_unregister, (void *memory)) \
    ROW(MemHostGetDevicePointer_v2, host_device_pointer, \
        (CUdeviceptr * out, void *memory, unsigned flags)) \
    ROW(MemGetAddressRange_v2, get_address_range, \
        (CUdeviceptr * start, size_t * bytes, CUdeviceptr memory)) \
    ROW(PointerGetAttribute, pointer_get_attribute, \
        (void *out, CUpointer_attribute attribute, CUdeviceptr memory)) \
    ROW(PointerGetAttributes, pointer_get_attributes, \
        (unsigned count, CUpointer_attribute *attributes, void **outs, CUdeviceptr memory)) \
    ROW(PointerSetAttribute, pointer_set_attribute, \
        (const void *value, CUpointer_attribute attribute, CUdeviceptr memory)) \
    ROW(IpcGetMemHandle, ipc_get_memory, (CUipcMemHandle * out, CUdeviceptr memory)) \
    ROW(IpcOpenMemHandle_v2, ipc_open_memory, \
        (CUdeviceptr * out, CUipcMemHandle handle, unsigned flags)) \
    ROW(IpcCloseMemHandle, ipc_close_memory, (CUdeviceptr memory)) \
    ROW(IpcGetEventHandle, ipc_get_event, (CUipcEventHandle * out, CUevent event)) \
    ROW(IpcOpenEventHandle, ipc_open_event, (CUevent * out, CUipcEventHandle handle)) \
    ROW(StreamCreateWithPriority, stream_create, (CUstream * out, unsigned flags, int priority)) \
    ROW(StreamDestroy_v2, stream_destroy, (CUstream stream)) \
    ROW(StreamQuery, stream_query, (CUstream stream)) \
    ROW(StreamSynchronize, stream_synchronize, (CUstream stream)) \
    ROW(StreamWaitEvent, stream_wait_event, (CUstream stream, CUevent event, unsigned flags)) \
    ROW(StreamGetCtx, stream_get_context, (CUstream stream, CUcontext * out)) \
    ROW(StreamIsCapturing, stream_is_capturing, (CUstream stream, CUstreamCaptureStatus * out)) \
    ROW(StreamGetCaptureInfo_v2, stream_get_capture, \
        (CUstream stream, CUstreamCaptureStatus * status, uint64_t * id, CUgraph * graph, \
         const CUgraphNode **nodes, size_t *node_count)) \
    ROW(StreamBeginCapture_v2, begin_capture, (CUstream stream, CUstreamCaptureMode mode)) \
    ROW(StreamEndCapture, end_capture, (CUstream stream, CUgraph * out)) \
    ROW(GraphInstantiateWithFlags, graph_instantiate, \
        (CUgraphExec * out, CUgraph graph, unsigned long long flags)) \
    ROW(GraphLaunch, graph_launch, (CUgraphExec exec, CUstream stream)) \
    ROW(GraphExecDestroy, graph_exec_destroy, (CUgraphExec exec)) \
    ROW(GraphDestroy, graph_destroy, (CUgraph graph)) \
    ROW(ThreadExchangeStreamCaptureMode, exchange_capture_mode, (CUstreamCaptureMode * mode)) \
    ROW(StreamWriteValue32_v2, stream_write_value, \
        (CUstream stream, CUdeviceptr at, uint32_t value, unsigned flags)) \
    ROW(StreamWaitValue32_v2, stream_wait_value, \
        (CUstream stream, CUdeviceptr at, uint32_t value, unsigned flags)) \
    ROW(EventCreate, event_create, (CUevent * out, unsigned flags)) \
    ROW(EventDestroy_v2, event_destroy, (CUevent event)) \
    ROW(EventRecord, event_record, (CUevent event, CUstream stream)) \
    ROW(EventQuery, event_query, (CUevent event)) \
    ROW(EventSynchronize, event_synchronize, (CUevent event)) \
    ROW(LaunchKernel, launch, \
        (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
         unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, \
         void **parameters, void **extra)) \
    ROW(LaunchCooperativeKernel, launch_cooperative, \
        (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
         unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, \
         void **parameters)) \
    ROW(LaunchHostFunc, launch_host, (CUstream stream, CUhostFn function, void *data)) \
    ROW(MemcpyAsync, copy_async, \
        (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)) \
    ROW(Memcpy, copy, (CUdeviceptr dst, CUdeviceptr src, size_t bytes)) \
    ROW(MemcpyDtoHAsync_v2, copy_to_host_async, \
        (void *dst, CUdeviceptr src, size_t bytes, CUstream stream)) \
    ROW(MemcpyHtoDAsync_v2, copy_to_device_async, \
        (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)) \
    ROW(MemsetD8Async, set_bytes_async, \
        (CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)) \
    ROW(MemsetD32Async, set_words_async, \
        (CUdeviceptr dst, unsigned value, size_t count, CUstream stream)) \
    ROW(ModuleLoadData, module_load, (CUmodule * out, const void *image)) \
    ROW(ModuleUnload, module_unload, (CUmodule module)) \
    ROW(ModuleGetFunction, module_get_function, \
        (CUfunction * out, CUmodule module, const char *name)) \
    ROW(FuncGetAttribute, function_get_attribute, \
        (int *out, CUfunction_attribute attribute, CUfunction function)) \
    ROW(FuncSetAttribute, function_set_attribute, \
        (CUfunction function, CUfunction_attribute attribute, int value)) \
    ROW(OccupancyMaxActiveBlocksPerMultiprocessor, occupancy, \
        (int *out, CUfunction function, int block, size_t dynamic_shared)) \
    ROW(UserObjectCreate, user_object_create, \
        (CUuserObject * out, void *data, CUhostFn destroy, unsigned count, unsigned flags)) \
    ROW(UserObjectRelease, user_object_release, (CUuserObject object, unsigned count)) \
    ROW(GraphRetainUserObject, graph_retain_user_object, \
        (CUgraph graph, CUuserObject object, unsigned count, unsigned flags))

/** Functions that are missing in older drivers, and are NULL there. */
#define CUDA_OPTIONAL(ROW) \
    ROW(FuncLoad, function_load, (CUfunction function)) \
    ROW(StreamGetId, stream_get_id, (CUstream stream, unsigned long long *out)) \
    ROW(FlushGPUDirectRDMAWrites, flush_writes, \
        (CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope)) \
    ROW(MemGetHandleForAddressRange, get_range_handle, \
        (void *out, CUdeviceptr memory, size_t bytes, CUmemRangeHandleType type, \
         unsigned long long flags))

typedef struct cuda_driver {
#define ROW(name, member, parameters) CUresult(*member) parameters;
    CUDA_FUNCTIONS(ROW)
    CUDA_OPTIONAL(ROW)
#undef ROW
} cuda_driver;

/** Loads the driver library at the first call of the process.
 *  @return its functions; NULL, with fail() called, if the driver is missing, too old, or finds no
 *  GPU. */
const cuda_driver *cuda_driver_load(void);

/** @param what  the action, for the message.
 *  @return RING_OK; RING_ERR_SYSTEM with the driver's description of @p result. */
ring_status cuda_check(CUresult result, const char *what);

/** cuStreamQuery() in the relaxed capture mode, since it would end a capture of this thread. */
CUresult cuda_query(const cuda_driver *api, CUstream stream);

#endif
