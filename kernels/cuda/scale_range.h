/* SPDX-License-Identifier: Apache-2.0
 *
 * scale_range: performs kernel_scale() on floats with many threads, and returns the same bits:
 * dst (count) = src (count) * by.
 */
#ifndef RING_CUDA_SCALE_RANGE_H
#define RING_CUDA_SCALE_RANGE_H

#include "fold_types.h"
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

/** Scales @p count elements. @tparam By  by_block or by_tiles, whose threads call it. */
template <class T, class By> DEVICE void scale_range(const scale_job<T> &job, uint64_t count)
{
    enum : unsigned { SIZE = sizeof(typename T::stored) };
    const uint64_t lead = lead_to(job.src, SIZE, 16);
    if (lies_at(job.src, lead, SIZE, 16) && lies_at(job.dst, lead, SIZE, 16))
        By::template groups<scale_body<T, FOLD_ELEMENTS>, T::VECTOR, 1>(job, count, lead);
    else if (lies_at(job.src, 0, SIZE, SIZE) && lies_at(job.dst, 0, SIZE, SIZE))
        By::template elements<scale_body<T, FOLD_ELEMENTS>, T::VECTOR, 4>(job, count);
    else
        By::template elements<scale_body<T, FOLD_BYTES>, T::VECTOR, 1>(job, count);
}

#endif
