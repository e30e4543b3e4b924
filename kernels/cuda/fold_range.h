/* SPDX-License-Identifier: Apache-2.0
 *
 * fold_range: performs kernel_fold() on a range of elements with many threads, and returns the same
 * bits.
 *     fold_range<fold_of_f32>(args, share_of_block(begin, end));
 * The alignment of the operands selects the path. The operation is chosen outside the loops, except
 * for operands that are not aligned to their elements, and for divided integers.
 */
#ifndef RING_CUDA_FOLD_RANGE_H
#define RING_CUDA_FOLD_RANGE_H

#include "fold_types.h"
#include "kernel_args.h"
#include "sweep.h"

enum {
    FOLD_COPY = -1, /* in place of a ring_op: copies the bits of the only input     */
    FOLD_ANY = -2,  /* in place of a ring_op: reads args.op for each group          */
    FOLD_WIDTH = 4, /* elements in flight per thread, where there are no vectors    */
};

DEVICE bool fold_is_sum(int op)
{
    return op == RING_SUM || op == RING_AVG || op == RING_PREMUL_SUM;
}

/** Folds W groups of N elements, which begin at the elements i, i + stride, …:
 *      outs[k] (W, N) = finish(ins[0] (W, N) op ins[1] (W, N) op …)
 *  All groups of an input are loaded before they are combined, so that W loads are in flight. */
template <class T, int OP, bool DIVIDES, fold_access ONE> struct fold_body {
    typedef typename T::value value;

    template <unsigned N, unsigned W>
    DEVICE void at(const cuda_fold_args &a, uint64_t i, uint64_t stride)
    {
        enum : unsigned { UNITS = N == 1 ? 1u : (unsigned)T::UNITS, ELEMENTS = N / UNITS };
        const fold_access how = N == 1 ? ONE : FOLD_VECTORS;
        const int op = OP == FOLD_ANY ? a.op : OP, divisor = DIVIDES ? a.divisor : 0;
        value x[W][UNITS];
        UNROLL
        for (unsigned w = 0; w < W; w++)
            T::load(x[w], a.ins[0], a.ins_wide & 1, i + w * stride, how);
        enter<UNITS, W>(x, op, ELEMENTS);
        NO_UNROLL
        for (uint32_t k = 1; k < a.in_count; k++) {
            const bool wide = a.ins_wide >> k & 1;
            value y[W][UNITS];
            UNROLL
            for (unsigned w = 0; w < W; w++)
                T::load(y[w], a.ins[k], wide, i + w * stride, how);
            combine<UNITS, W>(x, y, op, ELEMENTS);
        }
        if (OP != FOLD_COPY)
            finish<UNITS, W>(x, divisor, ELEMENTS);
        NO_UNROLL
        for (uint32_t k = 0; k < a.out_count; k++) {
            const bool wide = a.outs_wide >> k & 1;
            UNROLL
            for (unsigned w = 0; w < W; w++)
                T::store(x[w], a.outs[k], wide, i + w * stride, how);
        }
    }

    template <unsigned UNITS, unsigned W>
    DEVICE void enter(value (&x)[W][UNITS], int op, unsigned elements)
    {
        UNROLL
        for (unsigned w = 0; w < W; w++)
            UNROLL
        for (unsigned u = 0; u < UNITS; u++)
            x[w][u] = T::enter(x[w][u], op, elements);
    }

    template <unsigned UNITS, unsigned W>
    DEVICE void combine(value (&x)[W][UNITS], const value (&y)[W][UNITS], int op, unsigned elements)
    {
        UNROLL
        for (unsigned w = 0; w < W; w++)
            UNROLL
        for (unsigned u = 0; u < UNITS; u++)
            x[w][u] = T::combine(x[w][u], y[w][u], op, elements);
    }

    template <unsigned UNITS, unsigned W>
    DEVICE void finish(value (&x)[W][UNITS], int divisor, unsigned elements)
    {
        UNROLL
        for (unsigned w = 0; w < W; w++)
            UNROLL
        for (unsigned u = 0; u < UNITS; u++)
            x[w][u] = T::finish(x[w][u], divisor, elements);
    }
};

/* ---- Alignment of the operands --------------------------------------------------------------- */

/** The access that all operands allow, and the number of elements before the first vector. */
struct fold_way {
    fold_access access;
    uint64_t lead;
};

template <class T> DEVICE unsigned fold_size(uint64_t wides, uint32_t k)
{
    return T::NARROW && (wides >> k & 1) != 0 ? sizeof(float) : sizeof(typename T::stored);
}

/* @return the number of elements before the first vector. The first narrow operand decides it: its
 * 16 bytes hold more elements, so its vectors begin at fewer places than those of float32. */
template <class T> DEVICE uint64_t fold_lead(const cuda_fold_args &a, uint64_t begin)
{
    const void *at = a.ins[0];
    unsigned size = fold_size<T>(a.ins_wide, 0);
    for (uint32_t k = 0; T::NARROW && size == sizeof(float) && k < a.in_count + a.out_count; k++) {
        const bool is_in = k < a.in_count;
        const uint32_t n = is_in ? k : k - a.in_count;
        size = fold_size<T>(is_in ? a.ins_wide : a.outs_wide, n);
        at = is_in ? a.ins[n] : a.outs[n];
    }
    return lead_to((const char *)at + begin * size, size, 16);
}

template <class T> DEVICE fold_way fold_find_way(const cuda_fold_args &a, uint64_t begin)
{
    const uint64_t lead = fold_lead<T>(a, begin);
    bool vectors = true, elements = true;
    NO_UNROLL
    for (uint32_t k = 0; k < a.in_count + a.out_count; k++) {
        const bool is_in = k < a.in_count;
        const uint32_t n = is_in ? k : k - a.in_count;
        const unsigned size = fold_size<T>(is_in ? a.ins_wide : a.outs_wide, n);
        const void *at = is_in ? a.ins[n] : a.outs[n];
        vectors = vectors && lies_at(at, begin + lead, size, 16);
        elements = elements && lies_at(at, 0, size, size);
    }
    return fold_way{!elements ? FOLD_BYTES : vectors ? FOLD_VECTORS : FOLD_ELEMENTS, lead};
}

/* ---- The range ------------------------------------------------------------------------------- */

template <class T, int OP, bool DIVIDES>
DEVICE void fold_along(const cuda_fold_args &a, const sweep_share &s, fold_way way)
{
    typedef fold_body<T, OP, DIVIDES, FOLD_ELEMENTS> body;
    const bool is_slow = OP == FOLD_ANY;
    if (way.access == FOLD_VECTORS)
        sweep_groups<body, T::VECTOR, is_slow ? 1u : (unsigned)T::WIDTH>(a, s, way.lead);
    else
        sweep_elements<body, is_slow ? 1u : (unsigned)FOLD_WIDTH>(a, s);
}

/* @return a mask of the low @p count bits, from 1 to 64. */
DEVICE uint64_t fold_mask(uint32_t count)
{
    return ~(uint64_t)0 >> (64 - count);
}

/** @return true if the fold only copies bits, from one input to outputs of the same type. */
template <class T> DEVICE bool fold_is_copy(const cuda_fold_args &a)
{
    const uint64_t all = fold_mask(a.out_count), wide = a.ins_wide & 1 ? all : 0;
    return a.in_count == 1 && a.divisor == 0 && !fold_is_logical(a.op) &&
           (!T::NARROW || (a.outs_wide & all) == wide);
}

template <class T>
DEVICE void fold_copy(const cuda_fold_args &a, const sweep_share &s, fold_way way)
{
    if (T::NARROW && a.ins_wide & 1)
        fold_along<fold_of_u32, FOLD_COPY, false>(a, s, way);
    else
        fold_along<typename T::raw, FOLD_COPY, false>(a, s, way);
}

/* Folds operands that are not aligned to their elements, one element at a time. */
template <class T>
DEVICE void fold_bytes(const cuda_fold_args &a, const sweep_share &s, bool copies)
{
    if (!copies)
        sweep_rest<fold_body<T, FOLD_ANY, true, FOLD_BYTES>>(a, s, s.end, s.end);
    else if (T::NARROW && a.ins_wide & 1)
        sweep_rest<fold_body<fold_of_u32, FOLD_COPY, false, FOLD_BYTES>>(a, s, s.end, s.end);
    else
        sweep_rest<fold_body<typename T::raw, FOLD_COPY, false, FOLD_BYTES>>(a, s, s.end, s.end);
}

template <class T>
DEVICE void fold_integers(const cuda_fold_args &a, const sweep_share &s, fold_way way)
{
    switch (a.op) {
    case RING_BAND:
        return fold_along<T, RING_BAND, false>(a, s, way);
    case RING_BOR:
        return fold_along<T, RING_BOR, false>(a, s, way);
    case RING_BXOR:
        return fold_along<T, RING_BXOR, false>(a, s, way);
    case RING_LAND:
        return fold_along<T, RING_LAND, false>(a, s, way);
    case RING_LOR:
        return fold_along<T, RING_LOR, false>(a, s, way);
    case RING_LXOR:
        return fold_along<T, RING_LXOR, false>(a, s, way);
    default:
        return fold_along<T, RING_SUM, false>(a, s, way);
    }
}

/** Folds the share's elements of all operands. All threads of the share call it.
 *  @tparam LEAN  operations other than sums are chosen for each group of elements. This needs a
 *                fraction of the code, for kernels that have much other code. */
template <class T, bool LEAN = false>
DEVICE void fold_range(const cuda_fold_args &a, const sweep_share &s)
{
    const fold_way way = fold_find_way<T>(a, s.begin);
    const bool copies = fold_is_copy<T>(a);
    if (way.access == FOLD_BYTES)
        return fold_bytes<T>(a, s, copies);
    if (copies)
        return fold_copy<T>(a, s, way);
    if ((a.divisor != 0 && !T::FLOAT) || (!fold_is_sum(a.op) && (LEAN || a.divisor != 0)))
        return fold_along<T, FOLD_ANY, true>(a, s, way);
    if (a.divisor != 0)
        return fold_along<T, RING_SUM, true>(a, s, way);
    if constexpr (LEAN)
        return fold_along<T, RING_SUM, false>(a, s, way);
    switch (a.op) {
    case RING_PROD:
        return fold_along<T, RING_PROD, false>(a, s, way);
    case RING_MAX:
        return fold_along<T, RING_MAX, false>(a, s, way);
    case RING_MIN:
        return fold_along<T, RING_MIN, false>(a, s, way);
    default:
        if constexpr (T::FLOAT)
            return fold_along<T, RING_SUM, false>(a, s, way);
        else
            return fold_integers<T>(a, s, way);
    }
}

#endif
