/* SPDX-License-Identifier: Apache-2.0
 * Shares a GPU's memory with network adapters, by dma-bufs or by address, and flushes the writes
 * that adapters make to it. */
#include "cuda_memory.h"

#include "sysfs.h"

#include <unistd.h>

/* A caller's thread is usually in the context already: asking is one call, pushing and popping two.
 */
static _Thread_local bool pushed;

ring_status cuda_enter(const cuda_device *c)
{
    const cuda_driver *api = cuda_driver_load();
    CUcontext current = NULL;
    pushed = api->get_current(&current) != CUDA_SUCCESS || current != c->context;
    return pushed ? cuda_check(api->push_current(c->context),
                               "entering the GPU's context (cuCtxPushCurrent)")
                  : RING_OK;
}

void cuda_leave(void)
{
    CUcontext left;
    if (pushed)
        (void)cuda_driver_load()->pop_current(&left);
}

/* ---- Sharing ------------------------------------------------------------------------------ */

/* CUDA accepts only ranges of whole host pages. The pages of a GPU are larger, so the memory around
 * an allocation may be exported too. */
static ring_status make_dmabuf(const cuda_driver *api, CUdeviceptr memory, size_t bytes,
                               accelerator_share *out)
{
    const CUdeviceptr page = (CUdeviceptr)sysconf(_SC_PAGESIZE);
    const CUdeviceptr first = memory / page * page;
    const CUdeviceptr end = (memory + bytes + page - 1) / page * page;
    out->offset = memory - first;
    return cuda_check(api->get_range_handle(&out->dmabuf, first, (size_t)(end - first),
                                            CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
                      "asking for a dma-buf (cuMemGetHandleForAddressRange)");
}

static ring_status cuda_share(const accelerator *a, void *base, size_t bytes,
                              accelerator_share *out)
{
    const cuda_device *c = cuda_device_of(a);
    const cuda_driver *api = cuda_driver_load();
    const CUdeviceptr memory = (uintptr_t)base;
    const unsigned yes = 1;
    *out = (accelerator_share){.dmabuf = -1, .by_address = c->peermem};
    if (!c->dmabuf && !c->peermem)
        return fail(RING_ERR_UNSUPPORTED,
                    "NVIDIA's driver shares its memory neither as dma-buf (open kernel module) nor "
                    "by nvidia-peermem (sudo modprobe nvidia-peermem)");
    /* CUDA's copies to this allocation are then complete when the call returns. Otherwise an
     * adapter could read memory that an earlier copy has not written yet. */
    RING_TRY(cuda_check(api->pointer_set_attribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory),
                        "making CUDA's copies synchronous (cuPointerSetAttribute)"));
    if (!c->dmabuf || make_dmabuf(api, memory, bytes, out) == RING_OK)
        return RING_OK;
    out->dmabuf = -1;
    return c->peermem ? RING_OK : RING_ERR_SYSTEM;
}

/* ---- Writes of adapters ------------------------------------------------------------------- */

static ring_status cuda_flush(const accelerator *a, void *at, size_t bytes)
{
    const cuda_device *c = cuda_device_of(a);
    const cuda_driver *api = cuda_driver_load();
    (void)at, (void)bytes; /* flushes all writes so far, wherever they are */
    RING_TRY(cuda_enter(c));
    const ring_status status =
        cuda_check(api->flush_writes(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                     CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER),
                   "flushing an adapter's writes (cuFlushGPUDirectRDMAWrites)");
    cuda_leave();
    return status;
}

static const pci_place *cuda_place(const accelerator *a)
{
    return &cuda_device_of(a)->place;
}

/* ---- Opening ------------------------------------------------------------------------------ */

/* @return the attribute's value; 0 if the driver does not know the attribute. */
static int attribute_of(const cuda_driver *api, CUdevice device, int attribute)
{
    int value = 0;
    return api->device_get_attribute(&value, attribute, device) == CUDA_SUCCESS ? value : 0;
}

static bool has_peermem(const char *root)
{
    static const char *const modules[] = {"/sys/module/nvidia_peermem/version",
                                          "/sys/kernel/mm/memory_peers/nv_mem/version",
                                          "/sys/kernel/mm/memory_peers/nv_mem_nc/version"};
    char version[64];
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (sysfs_line(version, sizeof version, "%s%s", root, modules[i]))
            return true;
    return false;
}

static void choose_ways(const cuda_driver *api, const char *root, cuda_device *c)
{
    const int ordering = attribute_of(api, c->device,
                                      CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
    const int options = attribute_of(api, c->device,
                                     CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
    const bool ordered = ordering >= CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER;
    const bool flushes = api->flush_writes != NULL &&
                         (options & CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST) != 0;
    c->dmabuf = api->get_range_handle != NULL &&
                attribute_of(api, c->device, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) != 0;
    c->peermem = has_peermem(root);
    c->base.share = ordered || flushes ? cuda_share : NULL;
    c->base.flush = !ordered && flushes ? cuda_flush : NULL;
    if (c->base.share == NULL)
        log_info("%s can neither order nor flush the writes of network adapters, so its data are "
                 "sent and received through host memory",
                 c->name);
}

/* After a failure the memory is kept until the process ends. Freeing it would wait for all streams,
 * which may be stopped at calls. */
static ring_status pin(size_t bytes, void **out, CUdeviceptr *there)
{
    const cuda_driver *api = cuda_driver_load();
    RING_TRY(cuda_check(api->host_alloc(out, bytes,
                                        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                        "allocating pinned memory (cuMemHostAlloc)"));
    return there == NULL ? RING_OK
                         : cuda_check(api->host_device_pointer(there, *out, 0),
                                      "finding pinned memory (cuMemHostGetDevicePointer)");
}

ring_status cuda_pin(size_t bytes, void **out, CUdeviceptr *there)
{
    const cuda_driver *api = cuda_driver_load();
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)api->exchange_capture_mode(&mode);
    const ring_status status = pin(bytes, out, there);
    (void)api->exchange_capture_mode(&mode);
    return status;
}

ring_status cuda_own_stream(CUstream *out)
{
    enum { HIGHEST = -1000 }; /* the driver clamps it to what it supports */
    return cuda_check(cuda_driver_load()->stream_create(out, CU_STREAM_NON_BLOCKING, HIGHEST),
                      "creating a stream (cuStreamCreateWithPriority)");
}

ring_status cuda_memory_open(int ordinal, const char *root, cuda_device *out)
{
    const cuda_driver *api = cuda_driver_load();
    char address[16];
    if (api == NULL)
        return RING_ERR_UNSUPPORTED;
    RING_TRY(cuda_check(api->device_get(&out->device, ordinal), "finding the GPU (cuDeviceGet)"));
    RING_TRY(cuda_check(api->device_get_pci_bus_id(address, sizeof address, out->device),
                        "finding the GPU on the PCI bus (cuDeviceGetPCIBusId)"));
    RING_TRY(cuda_check(api->primary_retain(&out->context, out->device),
                        "opening the GPU's context (cuDevicePrimaryCtxRetain)"));
    out->place = pci_place_at(root, address);
    (void)text_format(out->name, sizeof out->name, "CUDA device %d", ordinal);
    out->base.name = out->name;
    out->base.place = cuda_place;
    choose_ways(api, root, out);
    return RING_OK;
}

void cuda_memory_close(cuda_device *c)
{
    (void)cuda_driver_load()->primary_release(c->device);
}
