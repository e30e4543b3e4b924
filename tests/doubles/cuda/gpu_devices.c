/* SPDX-License-Identifier: Apache-2.0
 * Devices, contexts, and what errors are called. */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTRIBUTES = 160, MOST_PUSHED = 16, VERSION = 13000 };

static int attributes[ATTRIBUTES] = {
    [CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = MOST_BLOCK_THREADS,
    [8] = MOST_SHARED,         /* of a block */
    [10] = 32,                 /* threads of a warp */
    [39] = MOST_BLOCK_THREADS, /* threads of a multiprocessor */
    [41] = 1,                  /* one range of addresses with the host */
    [CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 9,
    [81] = MOST_SHARED_OPTIN, /* of a multiprocessor */
    [83] = 1,                 /* managed memory */
    [89] = 1,                 /* which both may touch at once */
    [CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM] = 1,
    [CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH] = 1,
    [97] = MOST_SHARED_OPTIN, /* of a block that asks for it */
    [CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED] = 1,
    [102] = 1, /* mapping memory piece by piece */
    [103] = 1, /* handing it on as descriptors */
    [106] = 1, /* blocks of a multiprocessor */
    [115] = 1, /* pools */
    [CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS] = 1,
    [122] = 1, /* values of 64 bits */
    [CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED] = 1,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUctx_st {
    _Atomic int retained;
    bool reaches[MOST_DEVICES];
} contexts[MOST_DEVICES];

static _Thread_local int pushed[MOST_PUSHED], depth, pushes; /* devices; pushes not popped */

static bool has_gpu(void)
{
    const char *options = getenv("FAKE_CUDA");
    return options == NULL || strcmp(options, "no_device") != 0;
}

static bool is_device(CUdevice device)
{
    return device >= 0 && device < gpu_is.devices;
}

int fake_cuda_set(int attribute, int value)
{
    const int before = attributes[attribute];
    attributes[attribute] = value;
    return before;
}

int device_attribute(int attribute)
{
    return attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? gpu_is.blocks
                                                                 : attributes[attribute];
}

CUresult cuInit(unsigned flags)
{
    if (has_gpu())
        ENTER();
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (has_gpu())
        gpu_start();
    return has_gpu() ? 0 : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *out)
{
    ENTER();
    *out = VERSION;
    return 0;
}

CUresult cuDeviceGetCount(int *out)
{
    ENTER();
    *out = gpu_is.devices;
    return 0;
}

CUresult cuDeviceGet(CUdevice *out, int ordinal)
{
    ENTER();
    *out = ordinal;
    return is_device(ordinal) ? 0 : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *out, int size, CUdevice device)
{
    ENTER();
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    return snprintf(out, (size_t)size, "Fake GPU") < size ? 0 : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute attribute, CUdevice device)
{
    ENTER();
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (attribute < 0 || attribute >= ATTRIBUTES)
        return CUDA_ERROR_INVALID_VALUE;
    *out = attribute == 33 /* bus */ ? 0x3b + device : device_attribute(attribute);
    return 0;
}

CUresult cuDeviceGetPCIBusId(char *out, int size, CUdevice device)
{
    ENTER();
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    return snprintf(out, (size_t)size, "0000:%02X:00.0", 0x3b + (unsigned)device) < size
               ? 0
               : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice device)
{
    ENTER();
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    memcpy(out->bytes, "fake GPU uuid  ", sizeof out->bytes);
    out->bytes[sizeof out->bytes - 1] = (char)device;
    return 0;
}

CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice device)
{
    ENTER();
    *out = AREA_BYTES;
    return is_device(device) ? 0 : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int *out, CUdevice device, CUdevice peer)
{
    ENTER();
    *out = gpu_is.peers != PEERS_NONE && device != peer;
    return is_device(device) && is_device(peer) ? 0 : CUDA_ERROR_INVALID_DEVICE;
}

/* ---- Contexts: one a device ---- */

CUcontext context_of(int device)
{
    return &contexts[device];
}

int device_of_context(CUcontext context)
{
    const ptrdiff_t device = context - contexts;
    return context != NULL && device >= 0 && device < gpu_is.devices ? (int)device : -1;
}

CUresult device_here(int *out)
{
    if (depth == 0 || pushed[depth - 1] < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *out = pushed[depth - 1];
    return contexts[*out].retained > 0 ? 0 : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

uint64_t contexts_alive(void)
{
    uint64_t sum = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_DEVICES; i++)
        sum += (uint64_t)contexts[i].retained;
    pthread_mutex_unlock(&lock);
    return sum;
}

uint64_t contexts_pushed(void)
{
    return (uint64_t)pushes;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    ENTER();
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    call_count(&call_counts.retains, 1);
    pthread_mutex_lock(&lock);
    contexts[device].retained++;
    pthread_mutex_unlock(&lock);
    *out = context_of(device);
    return 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    ENTER();
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    const bool retained = contexts[device].retained > 0;
    contexts[device].retained -= retained;
    pthread_mutex_unlock(&lock);
    call_count(&call_counts.releases, retained);
    return retained ? 0 : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    ENTER();
    if (device_of_context(context) < 0 || depth == MOST_PUSHED)
        return CUDA_ERROR_INVALID_CONTEXT;
    pushed[depth++] = device_of_context(context);
    pushes++;
    return 0;
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
    ENTER();
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    pushes -= pushes > 0;
    if (out != NULL)
        *out = pushed[depth] >= 0 ? context_of(pushed[depth]) : NULL;
    return 0;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
    ENTER();
    *out = depth > 0 && pushed[depth - 1] >= 0 ? context_of(pushed[depth - 1]) : NULL;
    return 0;
}

/* In the place of the topmost one. */
CUresult cuCtxSetCurrent(CUcontext context)
{
    ENTER();
    if (context != NULL && device_of_context(context) < 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth == 0)
        depth = 1;
    pushed[depth - 1] = device_of_context(context);
    return 0;
}

CUresult cuCtxGetDevice(CUdevice *out)
{
    ENTER();
    return device_here(out);
}

CUresult cuCtxSynchronize(void)
{
    int device;
    ENTER();
    TRY(device_here(&device));
    TRY(capture_forbids());
    return gpu_drain(device);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    int device;
    ENTER();
    TRY(device_here(&device));
    const int other = device_of_context(peer);
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (other < 0 || other == device)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (gpu_is.peers == PEERS_NONE)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    pthread_mutex_lock(&lock);
    const bool before = contexts[device].reaches[other];
    contexts[device].reaches[other] = true;
    pthread_mutex_unlock(&lock);
    return before ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : 0;
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                    CUflushGPUDirectRDMAWritesScope scope)
{
    int device;
    ENTER();
    TRY(device_here(&device));
    if (target != 0 || scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER)
        return CUDA_ERROR_INVALID_VALUE;
    if ((attributes[CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS] & 1) == 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    call_count(&call_counts.flushes, 1);
    return 0;
}

/* ---- Errors ---- */

static const struct {
    int number;
    const char *name;
} constants[] = {
#define ROW(name, value) {value, #name},
    CUDA_CONSTANTS(ROW) TEST_CUDA_CONSTANTS(ROW)
#undef ROW
};

CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = NULL;
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (constants[i].number == error && strncmp(constants[i].name, "CUDA_", 5) == 0)
            *name = constants[i].name;
    return *name != NULL ? 0 : CUDA_ERROR_INVALID_VALUE;
}

/* Of most errors the name has to do. */
CUresult cuGetErrorString(CUresult error, const char **text)
{
    static const struct {
        int error;
        const char *text;
    } texts[] = {{CUDA_ERROR_INVALID_VALUE, "invalid argument"},
                 {CUDA_ERROR_OUT_OF_MEMORY, "out of memory"},
                 {CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"},
                 {CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"},
                 {CUDA_ERROR_INVALID_CONTEXT, "invalid device context"},
                 {CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"},
                 {CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"},
                 {CUDA_ERROR_NOT_SUPPORTED, "operation not supported"}};
    const CUresult known = cuGetErrorName(error, text);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].error == error)
            *text = texts[i].text;
    return known;
}
