/* SPDX-License-Identifier: Apache-2.0
 * Embeds the compiled images of GPU kernels in the library. The build defines CUDA_IMAGES(ROW) as
 * their list; a build without nvcc contains no images. */
#include "cuda_images.h"

#include <stddef.h>
#include <string.h>

#ifndef CUDA_IMAGES
#define CUDA_IMAGES(ROW)
#endif

#define ROW(name, path) \
    __asm__(".pushsection .rodata\n.balign 16\nring_cuda_image_" #name ":\n.incbin \"" path \
            "\"\n.popsection"); \
    extern const char ring_cuda_image_##name[] __attribute__((visibility("hidden")));
CUDA_IMAGES(ROW)
#undef ROW

typedef struct image {
    const char *source;
    const void *bytes;
} image;

const void *cuda_image(const char *source)
{
    static const image images[] = {
#define ROW(name, path) {#name, ring_cuda_image_##name},
        CUDA_IMAGES(ROW)
#undef ROW
            {NULL, NULL}};
    const image *i = images;
    while (i->source != NULL && strcmp(i->source, source) != 0)
        i++;
    return i->bytes;
}
