/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_images: provides the compiled GPU kernels that this libring contains, one image for each
 * source file.
 */
#ifndef RING_CUDA_IMAGES_H
#define RING_CUDA_IMAGES_H

/** @param source  the name of the source file without .cu.
 *  @return a static image that the driver can load; NULL if this libring was built without nvcc. */
const void *cuda_image(const char *source);

#endif
