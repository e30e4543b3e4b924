/* SPDX-License-Identifier: Apache-2.0
 * The bytes that the double of the driver takes for an image of all emulated kernels. */
#include "cuda_images.h"

const void *cuda_image(const char *source)
{
    return "RINGEMU";
}
