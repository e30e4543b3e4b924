/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_kernels: loads images that contain kernels for each type of elements.
 */
#ifndef RING_CUDA_KERNELS_H
#define RING_CUDA_KERNELS_H

#include "cuda_driver.h"

#include <ring/ring.h>

/** Loads an image's kernels on the device whose context the thread has entered.
 *  @param name   the image (cuda_images.h). @param names  the kernels, by type.
 *  @param[out] module  the caller unloads it, even after a failure; NULL if nothing was loaded.
 *  @param[out] of  the kernels, by type.
 *  @return RING_OK; RING_ERR_UNSUPPORTED: libring was built without kernels; RING_ERR_SYSTEM. */
ring_status cuda_kernels_load(const char *name, const char *const names[RING_DTYPE_COUNT],
                              CUmodule *module, CUfunction of[RING_DTYPE_COUNT]);
/** Finds and loads further kernels of an image, by type, as cuda_kernels_load() does. */
ring_status cuda_kernels_find(CUmodule module, const char *const names[RING_DTYPE_COUNT],
                              CUfunction of[RING_DTYPE_COUNT]);
/** Finds and loads one more kernel. */
ring_status cuda_kernels_find_one(CUmodule module, const char *name, CUfunction *out);
/** @param[out] blocks  the number of blocks of @p threads threads that can run at once on the
 *  device. */
ring_status cuda_kernels_count_blocks(CUdevice device, CUfunction kernel, int threads, int *blocks);

#endif
