/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_kernels: loading an image, a kernel of which there is for each type.
 */
#ifndef RING_CUDA_KERNELS_H
#define RING_CUDA_KERNELS_H

#include "cuda_driver.h"

#include <ring/ring.h>

/** An image's kernels on the device whose context is entered.
 *  @param name   of the image (cuda_images.h). @param names  of the kernels, by type.
 *  @param[out] module  to be unloaded, also after a failure; NULL: nothing was loaded.
 *  @return RING_ERR_UNSUPPORTED: libring was built without kernels; RING_ERR_SYSTEM. */
ring_status cuda_kernels_load(const char *name, const char *const names[RING_DTYPE_COUNT],
                              CUmodule *module, CUfunction of[RING_DTYPE_COUNT]);
/** @param[out] blocks  of @p threads threads that run at once on the device. */
ring_status cuda_kernels_count_blocks(CUdevice device, CUfunction kernel, int threads, int *blocks);

#endif
