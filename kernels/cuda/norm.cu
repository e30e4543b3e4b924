/* SPDX-License-Identifier: Apache-2.0
 * norm: computes the sum of squares of gradients, and from it the factor by which scale.cu clips
 * them. kernel_args.h states the order of additions, which depends only on the count.
 * Host reference: a plain loop in that order, and torch.nn.utils.clip_grad_norm_. Traffic: each
 * array once. Launch: blocks of CUDA_BLOCK threads; as many as the device can run at once for
 * squares_GRAD, and a single one for norm_finish. */
#include "half_casts.h"
#include "kernel_args.h"

#include <math.h>

enum : unsigned { ROW = CAST_GROUP * CUDA_BLOCK, ROWS = 4 /* loads in flight per thread */ };

template <class Cast> DEVICE void load_group(float *x, const void *array, uint64_t i, bool whole)
{
    if (whole) {
        cast_load<Cast, CAST_GROUP>(x, array, i);
        return;
    }
    UNROLL
    for (unsigned k = 0; k < CAST_GROUP; k++)
        cast_load<Cast, 1>(x + k, array, i + k);
}

DEVICE double square(float x)
{
    return (double)x * (double)x;
}

/* @return this thread's share of the sum of squares of array[begin, end), which is one part. A row
 * has a group of elements for each thread. The first loop takes ROWS rows at a time, with all loads
 * ahead of the additions; the second takes the last rows, which may be incomplete. */
template <class Cast> DEVICE double square_part(const void *array, uint64_t begin, uint64_t end)
{
    const bool whole = cast_may_group<Cast>(array, 0);
    double sum = 0;
    uint64_t i = begin + thread_index() * CAST_GROUP;
    NO_UNROLL
    for (; i + (ROWS - 1) * ROW + CAST_GROUP <= end; i += ROWS * ROW) {
        float x[ROWS][CAST_GROUP];
        UNROLL
        for (unsigned r = 0; r < ROWS; r++)
            load_group<Cast>(x[r], array, i + r * ROW, whole);
        UNROLL
        for (unsigned r = 0; r < ROWS; r++)
            UNROLL
        for (unsigned k = 0; k < CAST_GROUP; k++)
            sum += square(x[r][k]);
    }
    NO_UNROLL
    for (; i < end; i += ROW)
        for (uint64_t k = i; k < i + CAST_GROUP && k < end; k++) {
            float x;
            cast_load<Cast, 1>(&x, array, k);
            sum += square(x);
        }
    return sum;
}

/* sums (parts): block b computes the sums of the parts b, b + blocks, …. */
template <class Cast> DEVICE void square_parts(const cuda_squares_args &args)
{
    const uint64_t part = CUDA_NORM_PART;
    for (uint64_t p = block_index(); p * part < args.count; p += block_count()) {
        const uint64_t begin = p * part, left = args.count - begin;
        const double mine = square_part<Cast>(args.grad, begin,
                                              begin + (left < part ? left : part));
        const double sum = block_sum<CUDA_BLOCK>(mine);
        if (thread_index() == 0)
            args.sums[p] = sum;
    }
}

#define SQUARES(name) \
    KERNEL_BOUND(squares_##name, cuda_squares_args, CUDA_BLOCK, 4) \
    { \
        square_parts<cast_##name>(args); \
    }
SQUARES(f32)
SQUARES(f16)
SQUARES(bf16)

/* @return scale * min(1, max_norm / (norm + 1e-6)); a NaN stays NaN. */
DEVICE double clipping_factor(double total, double scale, double max_norm)
{
    const double norm = fabs(scale) * sqrt(total), ratio = max_norm / (norm + 1e-6);
    return scale * (ratio > 1 ? 1 : ratio);
}

/* total = the sum of sums (parts); factor and overflow follow from it. */
KERNEL_BOUND(norm_finish, cuda_norm_args, CUDA_BLOCK, 4)
{
    const double total = block_sum_of<CUDA_BLOCK>(args.sums, args.parts);
    if (thread_index() != 0)
        return;
    if (args.total != nullptr)
        *args.total = total;
    if (args.factor != nullptr)
        *args.factor = clipping_factor(total, args.scale, args.max_norm);
    if (args.overflow != nullptr && !(total - total == 0))
        *args.overflow = 1;
}
