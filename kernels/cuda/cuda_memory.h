/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_memory: memory of NVIDIA's GPUs, shared with adapters (GPUDirect): what an accelerator needs
 * for share(), flush() and place(). Folds are not here.
 */
#ifndef RING_CUDA_MEMORY_H
#define RING_CUDA_MEMORY_H

#include "accelerator.h"
#include "cuda_driver.h"

typedef struct cuda_device {
    accelerator base; /* first: who has its address has the device's */
    CUdevice device;
    CUcontext context;
    bool dmabuf;  /* the driver hands memory out as dma-bufs                 */
    bool peermem; /* nvidia-peermem tells adapters' drivers of its addresses */
    pci_place place;
    char name[32];
} cuda_device;

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
