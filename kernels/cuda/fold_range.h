/* SPDX-License-Identifier: Apache-2.0
 *
 * fold_range: performs kernel_fold() with many threads, and returns the same bits.
 *     fold_range<fold_of_f32, by_tiles>(args, count);
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

/** The operands of a fold for which a body is compiled. */
enum fold_form {
    FOLD_MANY, /* any number of inputs and outputs                          */
    FOLD_ONE,  /* 1 input, 1 or 2 outputs                                   */
    FOLD_TWO,  /* 2 inputs, 1 or 2 outputs                                  */
    FOLD_EVEN  /* as FOLD_TWO, and no operand is of the accumulator type    */
};

/** Folds W groups of N elements, which begin at the elements i, i + stride, …:
 *      outs[k] (W, N) = finish(ins[0] (W, N) op ins[1] (W, N) op …)
 *  All groups of an input are loaded before they are combined, so that W loads are in flight. */
template <class T, int OP, bool DIVIDES, fold_access ACCESS, fold_form FORM> struct fold_body {
    typedef typename T::value value;

    template <unsigned N, unsigned W, class Args>
    DEVICE void at(const Args &a, uint64_t i, uint64_t stride)
    {
        enum : unsigned { UNITS = N == 1 ? 1u : (unsigned)T::UNITS, ELEMENTS = N / UNITS };
        const fold_access how = N == 1 ? ACCESS : FOLD_VECTORS;
        const int op = OP == FOLD_ANY ? a.op : OP, divisor = DIVIDES ? a.divisor : 0;
        value x[W][UNITS];
        load<UNITS, W>(x, a, 0, i, stride, how);
        if (FORM == FOLD_TWO || FORM == FOLD_EVEN) {
            value y[W][UNITS];
            load<UNITS, W>(y, a, 1, i, stride, how);
            enter<ELEMENTS, UNITS, W>(x, op);
            combine<ELEMENTS, UNITS, W>(x, y, op);
        }
        if (FORM == FOLD_MANY) {
            enter<ELEMENTS, UNITS, W>(x, op);
            NO_UNROLL
            for (uint32_t k = 1; k < a.in_count; k++) {
                value y[W][UNITS];
                load<UNITS, W>(y, a, k, i, stride, how);
                combine<ELEMENTS, UNITS, W>(x, y, op);
            }
        }
        if (OP != FOLD_COPY)
            finish<ELEMENTS, UNITS, W>(x, divisor);
        store<UNITS, W>(x, a, 0, i, stride, how);
        if (FORM != FOLD_MANY && a.out_count == 2)
            store<UNITS, W>(x, a, 1, i, stride, how);
        NO_UNROLL
        for (uint32_t k = 1; FORM == FOLD_MANY && k < a.out_count; k++)
            store<UNITS, W>(x, a, k, i, stride, how);
    }

    template <unsigned UNITS, unsigned W, class Args>
    DEVICE void load(value (&x)[W][UNITS], const Args &a, uint32_t k, uint64_t i, uint64_t stride,
                     fold_access how)
    {
        const bool wide = FORM != FOLD_EVEN && (a.ins_wide >> k & 1) != 0;
        UNROLL
        for (unsigned w = 0; w < W; w++)
            T::load(x[w], a.ins[k], wide, i + w * stride, how);
    }

    template <unsigned UNITS, unsigned W, class Args>
    DEVICE void store(const value (&x)[W][UNITS], const Args &a, uint32_t k, uint64_t i,
                      uint64_t stride, fold_access how)
    {
        const bool wide = FORM != FOLD_EVEN && (a.outs_wide >> k & 1) != 0;
        UNROLL
        for (unsigned w = 0; w < W; w++)
            T::store(x[w], a.outs[k], wide, i + w * stride, how);
    }

    template <unsigned ELEMENTS, unsigned UNITS, unsigned W>
    DEVICE void enter(value (&x)[W][UNITS], int op)
    {
        UNROLL
        for (unsigned w = 0; w < W; w++)
            UNROLL
        for (unsigned u = 0; u < UNITS; u++)
            x[w][u] = T::template enter<ELEMENTS>(x[w][u], op);
    }

    template <unsigned ELEMENTS, unsigned UNITS, unsigned W>
    DEVICE void combine(value (&x)[W][UNITS], const value (&y)[W][UNITS], int op)
    {
        UNROLL
        for (unsigned w = 0; w < W; w++)
            UNROLL
        for (unsigned u = 0; u < UNITS; u++)
            x[w][u] = T::template combine<ELEMENTS>(x[w][u], y[w][u], op);
    }

    template <unsigned ELEMENTS, unsigned UNITS, unsigned W>
    DEVICE void finish(value (&x)[W][UNITS], int divisor)
    {
        UNROLL
        for (unsigned w = 0; w < W; w++)
            UNROLL
        for (unsigned u = 0; u < UNITS; u++)
            x[w][u] = T::template finish<ELEMENTS>(x[w][u], divisor);
    }
};

/* ---- The operation --------------------------------------------------------------------------- */

template <class Job, class Args> DEVICE void fold_by_bits(const Args &args, int op)
{
    switch (op) {
    case RING_BAND:
        return Job::template run<RING_BAND>(args);
    case RING_BOR:
        return Job::template run<RING_BOR>(args);
    case RING_BXOR:
        return Job::template run<RING_BXOR>(args);
    case RING_LAND:
        return Job::template run<RING_LAND>(args);
    case RING_LOR:
        return Job::template run<RING_LOR>(args);
    default:
        return Job::template run<RING_LXOR>(args);
    }
}

/** Calls Job::run<OP>(args) for the operation, or for RING_SUM if it adds. */
template <class T, class Job, class Args> DEVICE void fold_by_op(const Args &args, int op)
{
    switch (op) {
    case RING_PROD:
        return Job::template run<RING_PROD>(args);
    case RING_MAX:
        return Job::template run<RING_MAX>(args);
    case RING_MIN:
        return Job::template run<RING_MIN>(args);
    case RING_SUM:
    case RING_AVG:
    case RING_PREMUL_SUM:
        return Job::template run<RING_SUM>(args);
    default:
        if constexpr (!T::FLOAT)
            fold_by_bits<Job>(args, op);
    }
}

/** @return true if the fold only copies bits, from one input to outputs of the same type. */
template <class T, class Args> DEVICE bool fold_is_copy(const Args &a)
{
    const uint64_t all = ~(uint64_t)0 >> (64 - a.out_count), wide = a.ins_wide & 1 ? all : 0;
    return a.in_count == 1 && a.divisor == 0 && !fold_is_logical(a.op) &&
           (!T::NARROW || (a.outs_wide & all) == wide);
}

/* ---- Any number of operands, anywhere -------------------------------------------------------- */

/** A fold of @p count elements, whose operands allow an access. */
struct fold_whole {
    const cuda_fold_args &args;
    uint64_t count;
    fold_way way;
};

template <class T, int OP, bool DIVIDES, class By, fold_form FORM = FOLD_MANY>
DEVICE void fold_along(const fold_whole &f)
{
    typedef fold_body<T, OP, DIVIDES, FOLD_ELEMENTS, FOLD_MANY> body;
    typedef fold_body<T, OP, DIVIDES, FOLD_ELEMENTS, FORM> vectors;
    const bool is_slow = OP == FOLD_ANY;
    if (f.way.access == FOLD_VECTORS)
        By::template groups<vectors, T::VECTOR, is_slow ? 1u : (unsigned)T::WIDTH>(f.args, f.count,
                                                                                   f.way.lead);
    else
        By::template elements<body, T::VECTOR, is_slow ? 1u : (unsigned)FOLD_WIDTH>(f.args,
                                                                                    f.count);
}

template <class T, class By> struct fold_undivided {
    template <int OP> DEVICE void run(const fold_whole &f)
    {
        fold_along<T, OP, false, By>(f);
    }
};

/* Operands that are not aligned to their elements are folded one element at a time. */
template <class T, int OP, class By> DEVICE void fold_bytes(const fold_whole &f)
{
    typedef fold_body<T, OP, OP == FOLD_ANY, FOLD_BYTES, FOLD_MANY> body;
    By::template elements<body, T::VECTOR, 1>(f.args, f.count);
}

/* @tparam T  accesses of it keep the bits. */
template <class T, class By> DEVICE void fold_copy(const fold_whole &f)
{
    if (f.way.access == FOLD_BYTES)
        fold_bytes<T, FOLD_COPY, By>(f);
    else
        fold_along<T, FOLD_COPY, false, By>(f);
}

/** Folds @p count elements of all operands.
 *  @tparam By    by_block or by_tiles, whose threads call it.
 *  @tparam LEAN  operations other than sums are chosen for each group of elements. This needs a
 *                fraction of the code, for kernels that have much other code. */
template <class T, class By, bool LEAN = false>
DEVICE void fold_range(const cuda_fold_args &a, uint64_t count)
{
    enum : unsigned { SIZE = sizeof(typename T::stored), WIDE = T::NARROW ? sizeof(float) : SIZE };
    const fold_whole f = {a, count, fold_find_way(&a, fold_sizes{SIZE, WIDE})};
    if (fold_is_copy<T>(a))
        return T::NARROW && a.ins_wide & 1 ? fold_copy<T, By>(f)
                                           : fold_copy<typename T::raw, By>(f);
    if (f.way.access == FOLD_BYTES)
        return fold_bytes<T, FOLD_ANY, By>(f);
    if ((a.divisor != 0 && !T::FLOAT) || (!fold_is_sum(a.op) && (LEAN || a.divisor != 0)))
        return fold_along<T, FOLD_ANY, true, By>(f);
    if (a.divisor != 0)
        return fold_along<T, RING_SUM, true, By>(f);
    if constexpr (!LEAN)
        return fold_by_op<T, fold_undivided<T, By>>(f, a.op);
    if (a.in_count == 2 && a.out_count <= 2)
        return fold_along<T, RING_SUM, false, By, FOLD_TWO>(f);
    return fold_along<T, RING_SUM, false, By>(f);
}

/* ---- One or two operands, by tiles of vectors ------------------------------------------------ */

/** A thread of it performs one access an operand, without loops. */
template <class T, bool DIVIDES, fold_form FORM> struct fold_tile {
    template <int OP> DEVICE void run(const cuda_fold_few_args &a)
    {
        typedef fold_body<T, OP, DIVIDES, FOLD_ELEMENTS, FORM> body;
        by_tiles::groups<body, T::VECTOR, 1>(a, a.count, a.lead);
    }
};

template <class T, fold_form FORM> DEVICE void fold_two(const cuda_fold_few_args &a)
{
    if (!T::FLOAT || a.divisor == 0)
        return fold_by_op<T, fold_tile<T, false, FORM>>(a, a.op);
    if constexpr (T::FLOAT)
        fold_tile<T, true, FORM>::template run<RING_SUM>(a);
}

/** Folds as cuda_fold_few_args states. All threads of the grid call it. */
template <class T> DEVICE void fold_few(const cuda_fold_few_args &a)
{
    typedef fold_tile<typename T::raw, false, FOLD_ONE> copy;
    if (a.in_count == 2)
        return !T::NARROW || (a.ins_wide | a.outs_wide) == 0 ? fold_two<T, FOLD_EVEN>(a)
                                                             : fold_two<T, FOLD_TWO>(a);
    if (!fold_is_copy<T>(a))
        return fold_tile<T, false, FOLD_ONE>::template run<RING_SUM>(a);
    if (T::NARROW && a.ins_wide & 1)
        return fold_tile<T, false, FOLD_ONE>::template run<FOLD_COPY>(a);
    copy::template run<FOLD_COPY>(a);
}

#endif
