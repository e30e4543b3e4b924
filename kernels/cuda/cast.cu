/* SPDX-License-Identifier: Apache-2.0
 * cast: converts arrays of float16 and bfloat16 to float32 and back, dst (count) = src (count).
 * Host reference: kernel_f16_to_f32() and the other casts. Traffic: 6 bytes per element. Launch:
 * cuda_tiles(count, CAST_GROUP, CUDA_BLOCK) blocks of CUDA_BLOCK threads. */
#include "half_casts.h"

template <class From, class To> struct cast_body {
    template <unsigned N, unsigned W>
    DEVICE void at(const cuda_cast_args &args, uint64_t i, uint64_t stride)
    {
        float x[W][N];
        UNROLL
        for (unsigned w = 0; w < W; w++)
            cast_load<From, N>(x[w], args.src, i + w * stride);
        UNROLL
        for (unsigned w = 0; w < W; w++)
            cast_store<To, N>(args.dst, i + w * stride, x[w]);
    }
};

template <class From, class To> DEVICE void cast_arrays(const cuda_cast_args &args)
{
    typedef cast_body<From, To> body;
    enum : unsigned { SIZE = sizeof(typename From::stored) };
    const uint64_t lead = lead_to(args.src, SIZE, CAST_GROUP * SIZE);
    if (cast_may_group<To>(args.dst, lead))
        by_tiles::groups<body, CAST_GROUP, 1>(args, args.count, lead);
    else
        by_tiles::elements<body, CAST_GROUP, CAST_GROUP>(args, args.count);
}

#define ROW(from, to) \
    KERNEL_BOUND(from##_to_##to, cuda_cast_args, CUDA_BLOCK, 4) \
    { \
        cast_arrays<cast_##from, cast_##to>(args); \
    }
ROW(f16, f32)
ROW(bf16, f32)
ROW(f32, f16)
ROW(f32, bf16)
