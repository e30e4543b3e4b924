/* SPDX-License-Identifier: Apache-2.0
 * scale: multiplies an array of floats by a factor, dst (count) = src (count) * by. The factor may
 * be in the device's memory, so that gradients are unscaled and clipped in one pass with the factor
 * that norm.cu computed.
 * Host reference: kernel_scale(). Traffic: each array once. Launch: cuda_tiles(count, 16 /
 * sizeof element, CUDA_BLOCK) blocks of CUDA_BLOCK threads. */
#include "kernel_args.h"
#include "scale_range.h"

template <class T> DEVICE void scale_array(const cuda_scale_args &args)
{
    const double by = args.factor != nullptr ? *args.factor : args.by;
    scale_range<T, by_tiles>({args.dst, args.src, (typename T::value)by}, args.count);
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
