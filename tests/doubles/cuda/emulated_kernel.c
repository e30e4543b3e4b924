/* SPDX-License-Identifier: Apache-2.0
 * The table of emulated kernels, and casts that a GPU has instructions for. */
#include "emulated_kernel.h"

#include <string.h>

static emulated_kernel *kernels;

void emulated_kernel_register(emulated_kernel *kernel)
{
    kernel->next = kernels;
    kernels = kernel;
}

const emulated_kernel *emulated_kernel_find(const char *name)
{
    const emulated_kernel *k = kernels;
    while (k != NULL && strcmp(k->name, name) != 0)
        k = k->next;
    return k;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A NaN becomes the one that GPUs make. */
float emulated_from_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    if (rest > 0x7c00)
        return float_of(0x7fffffff);
    if (rest == 0x7c00)
        return float_of(sign | 0x7f800000);
    const float magnitude = rest < 0x400 ? (float)rest * 0x1p-24F
                                         : float_of((rest << 13) + ((127 - 15) << 23));
    return sign != 0 ? -magnitude : magnitude;
}

/* A subnormal is rounded by the sum with a power of two whose last bit is worth its last. */
static uint32_t narrow(float magnitude)
{
    uint32_t bits;
    if (magnitude >= 65520.0F)
        return 0x7c00;
    if (magnitude < 0x1p-14F) {
        const float shifted = magnitude + 0.5F;
        memcpy(&bits, &shifted, sizeof bits);
        return bits - 0x3f000000;
    }
    memcpy(&bits, &magnitude, sizeof bits);
    bits += 0xfff + (bits >> 13 & 1);
    return (bits >> 13) - ((127 - 15) << 10);
}

uint16_t emulated_to_half(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return 0x7fff;
    const float magnitude = float_of(bits & 0x7fffffff);
    return (uint16_t)(narrow(magnitude) | (bits >> 16 & 0x8000));
}
