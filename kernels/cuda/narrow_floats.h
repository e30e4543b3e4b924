/* SPDX-License-Identifier: Apache-2.0
 *
 * narrow_floats: floats of 16 and 8 bits to float32 and back, one element: kernels/host/cast.h for
 * GPUs. A NaN of float32 that is to be narrowed has all bits set, as finished results have.
 */
#ifndef RING_CUDA_NARROW_FLOATS_H
#define RING_CUDA_NARROW_FLOATS_H

#include "device.h"

struct float16 {
    typedef uint16_t stored;

    DEVICE float widen(uint32_t bits)
    {
        return device_from_half((uint16_t)bits);
    }

    DEVICE uint32_t narrow(float x)
    {
        return x != x ? 0xffff : device_to_half(x);
    }
};

struct bfloat16 {
    typedef uint16_t stored;

    DEVICE float widen(uint32_t bits)
    {
        return device_bits<float>(bits << 16);
    }

    DEVICE uint32_t narrow(float x)
    {
        const uint32_t bits = device_bits<uint32_t>(x);
        return x != x ? 0xffff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    }
};

/** OCP's formats: what is too large becomes the largest finite number.
 *  @param MANTISSA  stored bits.
 *  @param BIAS      of float32's exponents, less theirs.
 *  @param LARGEST   finite number, as its bits. */
template <int MANTISSA, int BIAS, uint32_t LARGEST> struct float8 {
    typedef uint8_t stored;
    enum : uint32_t { SHIFT = 23 - MANTISSA, NORMAL = 1 << MANTISSA };

    /* The sum with a power of two whose last bit is worth that of a subnormal rounds to those. */
    DEVICE uint32_t narrow_subnormal(float magnitude)
    {
        const uint32_t power = (uint32_t)(BIAS + 1 + (int)SHIFT) << 23;
        return device_bits<uint32_t>(magnitude + device_bits<float>(power)) - power;
    }

    DEVICE uint32_t narrow(float x)
    {
        const uint32_t bits = device_bits<uint32_t>(x), magnitude = bits & 0x7fffffff;
        const uint32_t largest = (LARGEST << SHIFT) + ((uint32_t)BIAS << 23);
        const uint32_t bounded = magnitude < largest ? magnitude : largest;
        const uint32_t odd = bounded >> SHIFT & 1, half = (1u << (SHIFT - 1)) - 1;
        const uint32_t normal = (bounded - ((uint32_t)BIAS << 23) + half + odd) >> SHIFT;
        const bool small = magnitude < (uint32_t)(BIAS + 1) << 23;
        const uint32_t finite = small ? narrow_subnormal(device_bits<float>(magnitude)) : normal;
        return (magnitude > 0x7f800000 ? 0x7f : finite) | (bits >> 24 & 0x80);
    }

    DEVICE float widen_finite(uint32_t magnitude)
    {
        const float unit = device_bits<float>((uint32_t)(BIAS + 1 - MANTISSA) << 23);
        return magnitude < NORMAL
                   ? (float)magnitude * unit
                   : device_bits<float>((magnitude << SHIFT) + ((uint32_t)BIAS << 23));
    }
};

/** No infinity, one NaN. */
struct float8_e4m3 : float8<3, 120, 0x7e> {
    DEVICE float widen(uint32_t bits)
    {
        const uint32_t magnitude = bits & 0x7f;
        const float x = magnitude == 0x7f ? device_bits<float>(0x7fc00000u)
                                          : widen_finite(magnitude);
        return device_bits<float>(device_bits<uint32_t>(x) | (bits & 0x80) << 24);
    }
};

/** The upper byte of a float16. */
struct float8_e5m2 : float8<2, 112, 0x7b> {
    DEVICE float widen(uint32_t bits)
    {
        return device_from_half((uint16_t)(bits << 8));
    }
};

#endif
