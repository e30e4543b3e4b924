/* SPDX-License-Identifier: Apache-2.0
 *
 * fold_way: finds the widest access that the addresses of all operands of a fold allow. The host
 * and the kernels use the same functions.
 */
#ifndef RING_CUDA_FOLD_WAY_H
#define RING_CUDA_FOLD_WAY_H

#include "kernel_args.h"

#include <stdbool.h>

#ifdef __CUDACC__
#define FOLD_WAY static __device__ __forceinline__
#else
#define FOLD_WAY static inline
#endif

/** How elements are accessed: the bytes of one, one as a whole, or 16 bytes of several. */
enum fold_access { FOLD_BYTES, FOLD_ELEMENTS, FOLD_VECTORS };

/** The access that all operands allow, and the number of elements before the first vector. */
typedef struct fold_way {
    enum fold_access access;
    uint64_t lead;
} fold_way;

/** Bytes of an element: of most operands, and of those of the accumulator type. */
typedef struct fold_sizes {
    unsigned plain, wide;
} fold_sizes;

/** Operand @p k of the inputs and outputs, in that order. @param[out] size  of its elements. */
FOLD_WAY uint64_t fold_address(const cuda_fold_args *a, fold_sizes sizes, uint32_t k,
                               unsigned *size)
{
    const bool is_in = k < a->in_count;
    const uint32_t n = is_in ? k : k - a->in_count;
    *size = ((is_in ? a->ins_wide : a->outs_wide) >> n & 1) != 0 ? sizes.wide : sizes.plain;
    return is_in ? (uint64_t)a->ins[n] : (uint64_t)a->outs[n];
}

/** The first operand that is not wide decides where vectors begin: its 16 bytes hold more elements,
 *  so its vectors begin at fewer places than those of wide operands. */
FOLD_WAY fold_way fold_find_way(const cuda_fold_args *a, fold_sizes sizes)
{
    const uint32_t all = a->in_count + a->out_count;
    fold_way way = {FOLD_VECTORS, 0};
    unsigned size;
    uint64_t at = fold_address(a, sizes, 0, &size);
    for (uint32_t k = 1; size != sizes.plain && k < all; k++)
        at = fold_address(a, sizes, k, &size);
    way.lead = (0 - at) % 16 / size;
    for (uint32_t k = 0; k < all; k++) {
        at = fold_address(a, sizes, k, &size);
        if (at % size != 0)
            way.access = FOLD_BYTES;
        else if ((at + way.lead * size) % 16 != 0 && way.access == FOLD_VECTORS)
            way.access = FOLD_ELEMENTS;
    }
    return way;
}

#endif
