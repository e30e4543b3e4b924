/* SPDX-License-Identifier: Apache-2.0
 *
 * half_casts: loads arrays of float32, float16 and bfloat16 as float32, and stores them back, in
 * groups of 4 elements, each by one access. NaNs are converted as in kernel_f16_to_f32() and the
 * other casts of the host. Arrays must be aligned to their elements.
 */
#ifndef RING_CUDA_HALF_CASTS_H
#define RING_CUDA_HALF_CASTS_H

#include "kernel_args.h"
#include "narrow_floats.h"
#include "sweep.h"

/** The types of elements: how they are stored, widened and narrowed. */
struct cast_f32 {
    typedef float stored;
};

struct cast_f16 {
    typedef uint16_t stored;

    /* A NaN becomes quiet and keeps its sign and leading payload bits. */
    DEVICE float widen(uint32_t bits)
    {
        const uint32_t magnitude = bits & 0x7fff;
        if (magnitude > 0x7c00)
            return device_bits<float>(0x7fc00000 | magnitude << 13 | (bits & 0x8000) << 16);
        return float16::widen(bits);
    }

    DEVICE uint32_t narrow(float x)
    {
        const uint32_t bits = device_bits<uint32_t>(x);
        return x != x ? 0x7e00 | (bits >> 13 & 0x3ff) | (bits >> 16 & 0x8000) : float16::narrow(x);
    }
};

struct cast_bf16 : bfloat16 {
    DEVICE float widen(uint32_t bits)
    {
        return device_bits<float>(bits << 16 | ((bits & 0x7fff) > 0x7f80 ? 0x400000u : 0));
    }
};

/** x (N) = array[i, i + N), of the type that Cast describes; N is 1 or CAST_GROUP. */
template <class Cast, unsigned N> DEVICE void cast_load(float *x, const void *array, uint64_t i)
{
    typedef typename Cast::stored stored;
    const stored *at = (const stored *)array + i;
    if constexpr (sizeof(stored) == sizeof(float) && N == 1) {
        *x = *assume_global(at);
    } else if constexpr (sizeof(stored) == sizeof(float)) {
        const device_16 v = load_16(at);
        memcpy(x, &v, sizeof v);
    } else if constexpr (N == 1) {
        *x = Cast::widen(*assume_global(at));
    } else {
        const uint64_t four = *assume_global((const uint64_t *)(const void *)at);
        UNROLL
        for (unsigned k = 0; k < N; k++)
            x[k] = Cast::widen((uint16_t)(four >> 16 * k));
    }
}

/** array[i, i + N) = x (N), of the type that Cast describes; N is 1 or CAST_GROUP. */
template <class Cast, unsigned N> DEVICE void cast_store(void *array, uint64_t i, const float *x)
{
    typedef typename Cast::stored stored;
    stored *at = (stored *)array + i;
    if constexpr (sizeof(stored) == sizeof(float) && N == 1) {
        *assume_global(at) = *x;
    } else if constexpr (sizeof(stored) == sizeof(float)) {
        device_16 v;
        memcpy(&v, x, sizeof v);
        store_16(at, v);
    } else if constexpr (N == 1) {
        *assume_global(at) = (stored)Cast::narrow(*x);
    } else {
        uint64_t four = 0;
        UNROLL
        for (unsigned k = 0; k < N; k++)
            four |= (uint64_t)Cast::narrow(x[k]) << 16 * k;
        *assume_global((uint64_t *)(void *)at) = four;
    }
}

/** @return true if groups that begin after @p lead elements of the array can be accessed as a
 * whole.
 */
template <class Cast> DEVICE bool cast_may_group(const void *array, uint64_t lead)
{
    enum : unsigned { SIZE = sizeof(typename Cast::stored) };
    return lies_at(array, lead, SIZE, CAST_GROUP * SIZE);
}

#endif
