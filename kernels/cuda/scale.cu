/* SPDX-License-Identifier: Apache-2.0
 * scale: multiplies an array of floats by a factor, dst (count) = src (count) * by. The factor may
 * be in the device's memory, so that gradients are unscaled and clipped in one pass with the factor
 * that norm.cu computed.
 * Host reference: kernel_scale(). Traffic: each array once. Launch: cuda_tiles(count, 16 /
 * sizeof element, CUDA_BLOCK) blocks of CUDA_BLOCK threads. */
#include "fold_types.h"
#include "kernel_args.h"
#include "sweep.h"

template <class T> struct scale_job {
    void *dst;
    const void *src;
    typename T::value by;
};

template <class T, fold_access ONE> struct scale_body {
    template <unsigned N, unsigned W>
    DEVICE void at(const scale_job<T> &job, uint64_t i, uint64_t stride)
    {
        enum : unsigned { UNITS = N == 1 ? 1u : (unsigned)T::UNITS };
        const fold_access how = N == 1 ? ONE : FOLD_VECTORS;
        typename T::value x[W][UNITS];
        UNROLL
        for (unsigned w = 0; w < W; w++)
            T::load(x[w], job.src, false, i + w * stride, how);
        UNROLL
        for (unsigned w = 0; w < W; w++) {
            UNROLL
            for (unsigned u = 0; u < UNITS; u++)
                x[w][u] = T::template finish<1>(x[w][u] * job.by, 0);
            T::store(x[w], job.dst, false, i + w * stride, how);
        }
    }
};

template <class T> DEVICE void scale_array(const cuda_scale_args &args)
{
    enum : unsigned { SIZE = sizeof(typename T::stored) };
    const double by = args.factor != nullptr ? *args.factor : args.by;
    const scale_job<T> job = {args.dst, args.src, (typename T::value)by};
    const uint64_t lead = lead_to(args.src, SIZE, 16);
    if (lies_at(args.src, lead, SIZE, 16) && lies_at(args.dst, lead, SIZE, 16))
        by_tiles::groups<scale_body<T, FOLD_ELEMENTS>, T::VECTOR, 1>(job, args.count, lead);
    else if (lies_at(args.src, 0, SIZE, SIZE) && lies_at(args.dst, 0, SIZE, SIZE))
        by_tiles::elements<scale_body<T, FOLD_ELEMENTS>, T::VECTOR, 4>(job, args.count);
    else
        by_tiles::elements<scale_body<T, FOLD_BYTES>, T::VECTOR, 1>(job, args.count);
}

#define ROW(name) \
    KERNEL_BOUND(scale_##name, cuda_scale_args, CUDA_BLOCK, 4) \
    { \
        scale_array<fold_of_##name>(args); \
    }
ROW(f16)
ROW(f32)
ROW(f64)
ROW(bf16)
ROW(e4m3)
ROW(e5m2)
