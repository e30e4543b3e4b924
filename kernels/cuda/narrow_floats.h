/* SPDX-License-Identifier: Apache-2.0
 *
 * narrow_floats: converts single floats of 16 and 8 bits to float32 and back, for GPU kernels, as
 * kernels/host/cast.h does for the host. A NaN to be narrowed must have all bits set, as the
 * results of folds do.
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
        const uint16_t half = device_to_half(
            x); /* ahead of the choice, which needs no branch then */
        return x != x ? 0xffff : half;
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

/** The formats of the Open Compute Project. A number that is too large becomes the largest finite
 *  one.
 *  @tparam MANTISSA  stored bits of the mantissa.
 *  @tparam BIAS      the bias of float32's exponents less the bias of the format's.
 *  @tparam LARGEST   the bits of the largest finite number. */
template <int MANTISSA, int BIAS, uint32_t LARGEST> struct float8 {
    typedef uint8_t stored;
    enum : uint32_t { SHIFT = 23 - MANTISSA };

    /* Adds a power of two whose last bit has the weight of a subnormal's, which rounds to it. */
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

    /* The bits in their places are a float32 whose exponent is too small by BIAS, and a subnormal
     * one if the number is subnormal. The product is exact. */
    DEVICE float widen_finite(uint32_t magnitude)
    {
        const float power = device_bits<float>((uint32_t)(BIAS + 127) << 23);
        return device_bits<float>(magnitude << SHIFT) * power;
    }
};

/** This format has no infinity, and one NaN. */
struct float8_e4m3 : float8<3, 120, 0x7e> {
    DEVICE float widen(uint32_t bits)
    {
        const uint32_t magnitude = bits & 0x7f;
        const float x = magnitude == 0x7f ? device_bits<float>(0x7fc00000u)
                                          : widen_finite(magnitude);
        return device_bits<float>(device_bits<uint32_t>(x) | (bits & 0x80) << 24);
    }
};

/** This format is the upper byte of a float16. */
struct float8_e5m2 : float8<2, 112, 0x7b> {
    DEVICE float widen(uint32_t bits)
    {
        return device_from_half((uint16_t)(bits << 8));
    }
};

#endif
