/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_images: the compiled kernels that this libring carries, one image for each source file.
 */
#ifndef RING_CUDA_IMAGES_H
#define RING_CUDA_IMAGES_H

/** The image for the driver to load. @param source  the file's name without .cu.
 *  @return a static image; NULL: this libring was built without a compiler of GPU kernels. */
const void *cuda_image(const char *source);

#endif
