/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_memory: memory of NVIDIA's GPUs, shared with adapters (GPUDirect): what an accelerator needs
 * for share(), flush() and place(). Folds are not here.
 */
#ifndef RING_CUDA_MEMORY_H
#define RING_CUDA_MEMORY_H

#include "accelerator.h"
#include "cuda_driver.h"

/** Priority of libring's own streams: the driver takes the highest that there is. Streams of users
 *  wait for these, and each priority has hardware queues of its own: else one that waits could be
 *  ahead in the queue that both are in. */
enum { CUDA_OWN_STREAM = -1000 };

/** A GPU as this process uses it. */
typedef struct cuda_device {
    accelerator base; /* first: who has its address has the device's */
    CUdevice device;
    CUcontext context;
    bool dmabuf;  /* the driver hands memory out as dma-bufs                 */
    bool peermem; /* nvidia-peermem tells adapters' drivers of its addresses */
    pci_place place;
    char name[32];
    CUmodule module; /* of the folds    */
    CUstream stream; /* folds run in it */
    CUfunction folds[RING_DTYPE_COUNT];
    unsigned blocks;                /* of a fold, at most                */
    struct cuda_folds *state;       /* cuda_folds.c                      */
    struct cuda_stops *stops;       /* cuda_stops.c                      */
    struct cuda_programs *programs; /* cuda_programs.c             */
} cuda_device;

static inline const cuda_device *cuda_device_of(const accelerator *a)
{
    return (const cuda_device *)(const void *)a;
}

/** The device's context becomes the thread's; cuda_leave() gives the thread its own back. */
ring_status cuda_enter(const cuda_device *c);
void cuda_leave(void);

/** Pinned memory, which cuMemFreeHost() frees; the context of a device is entered, and a stream may
 *  be captured meanwhile. @param[out] there  where GPUs see it; NULL: nobody asks. */
ring_status cuda_pin(size_t bytes, void **out, CUdeviceptr *there);

/** Fills in out->base but for fold and settle, which stay as they are. Share and flush are left out
 *  where writes of adapters would have to be flushed and cannot be: such memory goes through the
 *  host's. Keeps the GPU's primary context until cuda_memory_close().
 *  @param root      "", or what stands before /sys.
 *  @param[out] out  stays where it is: its name lies in it.
 *  @return RING_ERR_UNSUPPORTED: no driver; RING_ERR_SYSTEM: no such GPU, or CUDA failed. */
ring_status cuda_memory_open(int ordinal, const char *root, cuda_device *out);
/** No memory of it is a region any more. */
void cuda_memory_close(cuda_device *c);

#endif
