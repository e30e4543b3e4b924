/* SPDX-License-Identifier: Apache-2.0
 * The GPU, its memory, and what CUDA would say. */
#include "fake_cuda.h"

#include "cuda_driver.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROW(name, member, parameters) FAKE_CUDA_API CUresult cu##name parameters;
CUDA_FUNCTIONS(ROW)
CUDA_OPTIONAL(ROW)
#undef ROW

enum {
    INVALID_VALUE = 1,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NOT_SUPPORTED = 801,
    MOST_ALLOCATIONS = 64,
    SKEW = 512,
    ATTRIBUTES = 160,
};

typedef struct allocation {
    char *seen, *real; /* of whole pages; NULL: free */
    size_t bytes;
    int file;
    bool synchronous;
} allocation;

static struct {
    pthread_mutex_t lock;
    allocation allocations[MOST_ALLOCATIONS];
    int attributes[ATTRIBUTES];
    const char *failing;
    int failure;
    fake_cuda_counts counts;
} gpu = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .attributes = {[CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED] = 1,
                        [CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS] = 1}};

static _Thread_local int pushed;

static CUcontext context_here(void)
{
    static char context;
    return (CUcontext)(void *)&context;
}

_Noreturn static void misuse(const char *what)
{
    fprintf(stderr, "fake_cuda: %s\n", what);
    abort();
}

/* @return what the call ends with, if a test wants it; 0: it goes on. */
static int wanted(const char *function)
{
    return gpu.failing != NULL && strcmp(gpu.failing, function) == 0 ? gpu.failure : 0;
}

void fake_cuda_fail(const char *function, int result)
{
    gpu.failing = result != 0 ? function : NULL;
    gpu.failure = result;
}

int fake_cuda_set(int attribute, int value)
{
    const int before = gpu.attributes[attribute];
    gpu.attributes[attribute] = value;
    return before;
}

void fake_cuda_counters(fake_cuda_counts *out)
{
    *out = gpu.counts;
    out->contexts_left = (uint64_t)pushed;
}

/* ---- Memory ---- */

static allocation *find(uintptr_t at)
{
    for (int i = 0; i < MOST_ALLOCATIONS; i++) {
        allocation *a = &gpu.allocations[i];
        if (a->seen != NULL && at - (uintptr_t)a->seen < a->bytes)
            return a;
    }
    return NULL;
}

void *fake_cuda_alloc(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int i = 0;
    while (i < MOST_ALLOCATIONS && gpu.allocations[i].seen != NULL)
        i++;
    if (i == MOST_ALLOCATIONS)
        misuse("too many allocations");
    allocation a = {.bytes = (bytes + SKEW + page - 1) / page * page,
                    .file = memfd_create("gpu", MFD_CLOEXEC)};
    if (a.file < 0 || ftruncate(a.file, (off_t)a.bytes) != 0)
        misuse("no memory");
    a.seen = mmap(NULL, a.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    a.real = mmap(NULL, a.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a.file, 0);
    if (a.seen == MAP_FAILED || a.real == MAP_FAILED)
        misuse("no memory");
    gpu.allocations[i] = a;
    return a.seen + SKEW;
}

void fake_cuda_free(void *memory)
{
    allocation *a = find((uintptr_t)memory);
    if (a == NULL)
        misuse("free of no memory of its own");
    munmap(a->seen, a->bytes);
    munmap(a->real, a->bytes);
    close(a->file);
    *a = (allocation){.seen = NULL};
}

unsigned char *fake_cuda_at(void *memory)
{
    const allocation *a = find((uintptr_t)memory);
    if (a == NULL)
        misuse("no memory of its own");
    return (unsigned char *)a->real + ((char *)memory - a->seen);
}

CUresult cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr memory)
{
    allocation *a = find((uintptr_t)memory);
    const int failure = wanted("cuPointerSetAttribute");
    if (failure != 0)
        return failure;
    if (a == NULL || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return INVALID_VALUE;
    a->synchronous = *(const unsigned *)value != 0;
    gpu.counts.sync_memops += a->synchronous;
    return 0;
}

/* A handle is of an allocation from its first page on: a file has but one beginning. */
CUresult cuMemGetHandleForAddressRange(void *out, CUdeviceptr memory, size_t bytes, int type,
                                       unsigned long long flags)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const allocation *a = find((uintptr_t)memory);
    const int failure = wanted("cuMemGetHandleForAddressRange");
    gpu.counts.handles++;
    gpu.counts.range = memory;
    gpu.counts.range_bytes = bytes;
    if (failure != 0)
        return failure;
    if (gpu.attributes[CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED] == 0)
        return NOT_SUPPORTED;
    if (a == NULL || memory % page != 0 || bytes % page != 0 || type != 1 || flags != 0 ||
        memory != (uintptr_t)a->seen || bytes > a->bytes)
        return INVALID_VALUE;
    if (!a->synchronous)
        misuse("a handle of memory whose copies are not synchronous");
    *(int *)out = fcntl(a->file, F_DUPFD_CLOEXEC, 0);
    return 0;
}

/* ---- Contexts ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    const int failure = wanted("cuDevicePrimaryCtxRetain");
    if (failure != 0 || device != 0)
        return failure != 0 ? failure : INVALID_DEVICE;
    gpu.counts.retains++;
    *out = context_here();
    return 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    gpu.counts.releases++;
    return 0;
}

CUresult cuCtxPushCurrent_v2(CUcontext pushing)
{
    const int failure = wanted("cuCtxPushCurrent_v2");
    if (failure != 0 || pushing != context_here())
        return failure != 0 ? failure : INVALID_CONTEXT;
    pushed++;
    return 0;
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
    if (pushed == 0)
        return INVALID_CONTEXT;
    pushed--;
    *out = context_here();
    return 0;
}

CUresult cuFlushGPUDirectRDMAWrites(int target, int scope)
{
    const int failure = wanted("cuFlushGPUDirectRDMAWrites");
    if (failure != 0)
        return failure;
    if (pushed == 0)
        return INVALID_CONTEXT;
    if (target != 0 || scope != 100)
        return INVALID_VALUE;
    if ((gpu.attributes[CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS] & 1) == 0)
        return NOT_SUPPORTED;
    pthread_mutex_lock(&gpu.lock);
    gpu.counts.flushes++;
    pthread_mutex_unlock(&gpu.lock);
    return 0;
}

/* ---- The GPU ---- */

static bool has_gpu(void)
{
    const char *options = getenv("FAKE_CUDA");
    return options == NULL || strcmp(options, "no_device") != 0;
}

CUresult cuInit(unsigned flags)
{
    if (flags != 0)
        return INVALID_VALUE;
    return has_gpu() ? wanted("cuInit") : NO_DEVICE;
}

CUresult cuDeviceGet(CUdevice *out, int ordinal)
{
    *out = 0;
    return ordinal == 0 ? 0 : INVALID_DEVICE;
}

CUresult cuDeviceGetAttribute(int *out, int attribute, CUdevice device)
{
    const int failure = wanted("cuDeviceGetAttribute");
    if (failure != 0)
        return failure;
    if (device != 0 || attribute < 0 || attribute >= ATTRIBUTES)
        return INVALID_VALUE;
    *out = gpu.attributes[attribute];
    return 0;
}

CUresult cuDeviceGetPCIBusId(char *out, int size, CUdevice device)
{
    return device == 0 && snprintf(out, (size_t)size, "0000:3B:00.0") < size ? 0 : INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    static const struct {
        int error;
        const char *text;
    } known[] = {{INVALID_VALUE, "invalid argument"},
                 {NO_DEVICE, "no CUDA-capable device is detected"},
                 {INVALID_DEVICE, "invalid device ordinal"},
                 {INVALID_CONTEXT, "invalid device context"},
                 {NOT_SUPPORTED, "operation not supported"}};
    *text = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].error == error)
            *text = known[i].text;
    return *text != NULL ? 0 : INVALID_VALUE;
}
