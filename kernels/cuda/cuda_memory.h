/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_memory: defines a GPU of NVIDIA's, and shares its memory with network adapters (GPUDirect).
 * This implements share(), flush() and place() of an accelerator; cuda_folds.h adds the folds.
 */
#ifndef RING_CUDA_MEMORY_H
#define RING_CUDA_MEMORY_H

#include "accelerator.h"
#include "cuda_driver.h"

/** The default stream of a context, which waits for all its blocking streams (CU_STREAM_LEGACY). */
#define CUDA_LEGACY_STREAM ((CUstream)(uintptr_t)1)
/** The highest handle of a default stream. */
enum { CUDA_DEFAULT_STREAMS = 2 };

/** A GPU as this process uses it. */
typedef struct cuda_device {
    accelerator base; /* must be first: cuda_device_of() converts its address */
    CUdevice device;
    CUcontext context;
    bool dmabuf;  /* the driver exports memory as dma-bufs                          */
    bool peermem; /* nvidia-peermem makes its addresses known to adapters' drivers  */
    pci_place place;
    char name[32];
    CUmodule module;                                           /* contains the kernels of folds */
    CUstream stream;                                           /* runs the folds                */
    CUfunction folds[RING_DTYPE_COUNT], few[RING_DTYPE_COUNT]; /* fold_NAME, fold_few_NAME */
    struct cuda_folds *state;                                  /* cuda_folds.c             */
    struct cuda_stops *stops;                                  /* cuda_stops.c             */
    struct cuda_programs *programs;                            /* cuda_programs.c          */
} cuda_device;

static inline const cuda_device *cuda_device_of(const accelerator *a)
{
    return (const cuda_device *)(const void *)a;
}

/** Makes the device's context current in the calling thread; cuda_leave() restores the thread's own
 *  context. The two do not nest. */
ring_status cuda_enter(const cuda_device *c);
void cuda_leave(void);

/** Allocates pinned memory, which cuMemFreeHost() frees. The thread must have entered the context
 * of a device; streams may be captured meanwhile.
 *  @param[out] there  the memory's address for GPUs; may be NULL. */
ring_status cuda_pin(size_t bytes, void **out, CUdeviceptr *there);
/** Creates a stream of libring's own, of the highest priority. Users' streams wait for libring's,
 *  and each priority has hardware queues of its own: in a shared queue, a stream that waits could
 *  block the stream that it waits for. The thread must have entered the context of a device. */
ring_status cuda_own_stream(CUstream *out);

/** Fills in name, place, share and flush of out->base. Share and flush are NULL if writes of
 *  adapters would have to be flushed and cannot be; data of such memory are copied through host
 *  memory. Holds the GPU's primary context until cuda_memory_close().
 *  @param root      a prefix of /sys, for tests; normally "".
 *  @param[out] out  must not be moved, because base.name points into it.
 *  @return RING_ERR_UNSUPPORTED: no driver; RING_ERR_SYSTEM: no such GPU, or CUDA failed. */
ring_status cuda_memory_open(int ordinal, const char *root, cuda_device *out);
/** Releases the context. No memory of the device may still be a region. */
void cuda_memory_close(cuda_device *c);

#endif
