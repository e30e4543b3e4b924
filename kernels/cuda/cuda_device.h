/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_device: a GPU of NVIDIA's as accelerator.
 */
#ifndef RING_CUDA_OPEN_DEVICE_H
#define RING_CUDA_OPEN_DEVICE_H

#include "cuda_memory.h"

/** Opens a GPU: its primary context, a stream of its own, and the kernels. The library keeps it for
 *  good.
 *  @param ordinal  CUDA's number. @param root  "", or the folder that holds /sys.
 *  @return RING_OK; RING_ERR_UNSUPPORTED: no driver, no kernels in this libring, or a driver that
 *  cannot wait for words; RING_ERR_SYSTEM: no such GPU, or CUDA failed; RING_ERR_MEMORY. */
ring_status cuda_device_open(int ordinal, const char *root, cuda_device **out);
/** The caller no longer uses it. NULL is allowed. */
void cuda_device_close(cuda_device *c);

#endif
