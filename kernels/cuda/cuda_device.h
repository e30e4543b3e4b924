/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_device: opens a GPU of NVIDIA's as an accelerator, which is how the engine uses it.
 */
#ifndef RING_CUDA_OPEN_DEVICE_H
#define RING_CUDA_OPEN_DEVICE_H

#include "cuda_memory.h"

/** Opens a GPU: retains its primary context, creates a stream, and loads the kernels. The library
 *  keeps a device open until the process ends.
 *  @param ordinal  CUDA's number of the device. @param root  as in cuda_memory_open().
 *  @return RING_OK; RING_ERR_UNSUPPORTED: no driver, no kernels in this libring, or a driver that
 *  cannot wait for words; RING_ERR_SYSTEM: no such GPU, or CUDA failed; RING_ERR_MEMORY. */
ring_status cuda_device_open(int ordinal, const char *root, cuda_device **out);
/** Closes a device that is no longer in use. NULL is allowed. */
void cuda_device_close(cuda_device *c);

#endif
