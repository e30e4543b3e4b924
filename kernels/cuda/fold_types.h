/* SPDX-License-Identifier: Apache-2.0
 *
 * fold_types: defines the element types of folds for fold_range.h and scale.cu. Each type is a
 * struct with
 *     stored, value   the types in memory and in arithmetic; a value may hold several elements
 *     VECTOR, UNITS   elements in 16 bytes, and the values that hold them
 *     WIDTH           vectors of 16 bytes that a thread keeps in flight, where blocks stay
 *     FEW_BLOCKS      blocks of 256 threads that a multiprocessor must hold in fold_few_NAME; 8 are
 *                     all of its threads
 *     FLOAT, NARROW   1 for floats; 1 for floats that are combined as float32
 *     load, store     access VECTOR elements, or a single one by elements or by bytes
 *     from_bits, to_bits   convert a single element from and to the bits that are stored
 *     enter, combine, finish   as in kernels/host/fold_type.h, on values of ELEMENTS elements
 * Callers pass operations as constants, so a switch over them costs nothing.
 */
#ifndef RING_CUDA_FOLD_TYPES_H
#define RING_CUDA_FOLD_TYPES_H

#include "fold_way.h"
#include "narrow_floats.h"

#include <ring/ring.h>
#include <type_traits>

DEVICE bool fold_is_logical(int op)
{
    return op >= RING_LAND && op <= RING_LXOR;
}

template <class Stored> DEVICE Stored fold_load_one(const void *array, uint64_t i, fold_access how)
{
    const char *at = (const char *)array + i * sizeof(Stored);
    if (how == FOLD_ELEMENTS)
        return *assume_global((const Stored *)at);
    Stored x;
    memcpy(&x, assume_global(at), sizeof x);
    return x;
}

template <class Stored>
DEVICE void fold_store_one(void *array, uint64_t i, Stored x, fold_access how)
{
    char *at = (char *)array + i * sizeof(Stored);
    if (how == FOLD_ELEMENTS)
        *assume_global((Stored *)at) = x;
    else
        memcpy(assume_global(at), &x, sizeof x);
}

/** x (COUNT) = the values at @p at, by accesses of 16 bytes. */
template <unsigned COUNT, class Value> DEVICE void fold_load_values(Value *x, const void *at)
{
    enum : unsigned { EACH = 16 / sizeof(Value) };
    UNROLL
    for (unsigned u = 0; u < COUNT; u += EACH) {
        const device_16 v = load_16((const char *)at + u * sizeof(Value));
        memcpy(x + u, &v, sizeof v);
    }
}

/** Stores x (COUNT) to @p at, by accesses of 16 bytes. */
template <unsigned COUNT, class Value> DEVICE void fold_store_values(void *at, const Value *x)
{
    enum : unsigned { EACH = 16 / sizeof(Value) };
    UNROLL
    for (unsigned u = 0; u < COUNT; u += EACH) {
        device_16 v;
        memcpy(&v, x + u, sizeof v);
        store_16((char *)at + u * sizeof(Value), v);
    }
}

/** Types that are combined as they are stored in memory, possibly several elements in a value. */
template <class Stored, class Value> struct fold_plain {
    typedef Stored stored;
    typedef Value value;
    enum : unsigned { VECTOR = 16 / sizeof(Stored), UNITS = 16 / sizeof(Value), FEW_BLOCKS = 8 };

    DEVICE void load(Value *x, const void *array, bool, uint64_t i, fold_access how)
    {
        if (how == FOLD_VECTORS)
            fold_load_values<UNITS>(x, (const char *)array + i * sizeof(Stored));
        else
            *x = fold_load_one<Stored>(array, i, how);
    }

    DEVICE void store(const Value *x, void *array, bool, uint64_t i, fold_access how)
    {
        if (how == FOLD_VECTORS)
            fold_store_values<UNITS>((char *)array + i * sizeof(Stored), x);
        else
            fold_store_one<Stored>(array, i, (Stored)*x, how);
    }

    DEVICE Value from_bits(uint64_t bits, bool)
    {
        Stored x;
        memcpy(&x, &bits, sizeof x);
        return (Value)x;
    }

    DEVICE uint64_t to_bits(Value value, bool)
    {
        const Stored x = (Stored)value;
        uint64_t bits = 0;
        memcpy(&bits, &x, sizeof x);
        return bits;
    }
};

/* ---- Integers: a word holds several elements of 8 or 16 bits ----------------------------------
 */

template <class Stored>
using fold_word = std::conditional_t<sizeof(Stored) == 8, uint64_t, uint32_t>;

template <class Stored, class Order> struct fold_integer : fold_plain<Stored, fold_word<Stored>> {
    typedef fold_word<Stored> value;
    typedef fold_integer raw;
    enum : unsigned { FLOAT = 0, NARROW = 0, BITS = 8 * sizeof(Stored), WIDTH = BITS < 32 ? 2 : 4 };

    DEVICE value combine_one(Stored a, Stored b, int op)
    {
        switch (op) {
        case RING_PROD:
            return (Stored)((value)a * (value)b);
        case RING_MAX:
            return (Order)a < (Order)b ? b : a;
        case RING_MIN:
            return (Order)a < (Order)b ? a : b;
        case RING_LAND:
            return a & (b != 0);
        case RING_LOR:
            return a | (b != 0);
        case RING_LXOR:
            return a ^ (b != 0);
        default:
            return (Stored)(a + b);
        }
    }

    template <unsigned ELEMENTS> DEVICE value combine(value a, value b, int op)
    {
        if (op == RING_BAND || op == RING_BOR || op == RING_BXOR)
            return op == RING_BAND ? a & b : op == RING_BOR ? a | b : a ^ b;
        value all = 0;
        UNROLL
        for (unsigned l = 0; l < ELEMENTS; l++)
            all |= (value)combine_one((Stored)(a >> l * BITS), (Stored)(b >> l * BITS), op)
                   << l * BITS;
        return all;
    }

    template <unsigned ELEMENTS> DEVICE value enter(value x, int op)
    {
        return fold_is_logical(op) ? combine<ELEMENTS>(0, x, RING_LOR) : x;
    }

    /* Not unrolled, because a division takes much code. */
    template <unsigned ELEMENTS> DEVICE value finish(value x, int divisor)
    {
        if (divisor == 0)
            return x;
        value all = 0;
        NO_UNROLL
        for (unsigned l = 0; l < ELEMENTS; l++)
            all |= (value)(Stored)((Order)(x >> l * BITS) / divisor) << l * BITS;
        return all;
    }
};

/* ---- Floats ---------------------------------------------------------------------------------- */

template <class Float, class Bits> struct fold_float_rules {
    /* The bits of both are combined by "or" unless one is less: so -0 is below +0, and NaNs stay
     * NaNs. */
    DEVICE Float least(Float a, Float b)
    {
        return device_bits<Float>(
            (Bits)(device_bits<Bits>(a < b ? a : b) | device_bits<Bits>(b < a ? b : a)));
    }

    template <unsigned> DEVICE Float combine(Float a, Float b, int op)
    {
        switch (op) {
        case RING_PROD:
            return a * b;
        case RING_MAX:
            return -least(-a, -b);
        case RING_MIN:
            return least(a, b);
        default:
            return a + b;
        }
    }

    template <unsigned> DEVICE Float enter(Float x, int)
    {
        return x;
    }

    /* Sets all bits of a NaN. */
    template <unsigned> DEVICE Float finish(Float x, int divisor)
    {
        if (divisor != 0)
            x = x / (Float)divisor;
        return x != x ? device_bits<Float>((Bits) ~(Bits)0) : x;
    }
};

template <class Float, class Bits>
struct fold_float : fold_plain<Float, Float>, fold_float_rules<Float, Bits> {
    typedef fold_integer<Bits, Bits> raw;
    enum : unsigned { FLOAT = 1, NARROW = 0, WIDTH = 4 };
};

/** @tparam Format  a format of narrow_floats.h. Wide operands are arrays of float32. */
template <class Format> struct fold_narrow : fold_float_rules<float, uint32_t> {
    typedef typename Format::stored stored;
    typedef float value;
    typedef fold_integer<stored, stored> raw;
    enum : unsigned { BITS = 8 * sizeof(stored), IN_WORD = 32 / BITS };
    enum : unsigned { FLOAT = 1, NARROW = 1, WIDTH = IN_WORD == 2 ? 2 : 1 };
    enum : unsigned { FEW_BLOCKS = IN_WORD == 2 ? 8 : 5 }; /* 16 elements need more registers */
    enum : unsigned { VECTOR = 16 / sizeof(stored), UNITS = VECTOR };

    DEVICE void load(value *x, const void *array, bool wide, uint64_t i, fold_access how)
    {
        const char *at = (const char *)array + i * (wide ? sizeof(float) : sizeof(stored));
        if (how != FOLD_VECTORS) {
            *x = wide ? fold_load_one<float>(at, 0, how)
                      : Format::widen(fold_load_one<stored>(at, 0, how));
            return;
        }
        if (wide) {
            fold_load_values<UNITS>(x, at);
            return;
        }
        const device_16 v = load_16(at);
        UNROLL
        for (unsigned u = 0; u < UNITS; u++)
            x[u] = Format::widen((stored)(v.words[u / IN_WORD] >> u % IN_WORD * BITS));
    }

    DEVICE void store(const value *x, void *array, bool wide, uint64_t i, fold_access how)
    {
        char *at = (char *)array + i * (wide ? sizeof(float) : sizeof(stored));
        if (how != FOLD_VECTORS) {
            if (wide)
                fold_store_one<float>(at, 0, *x, how);
            else
                fold_store_one<stored>(at, 0, (stored)Format::narrow(*x), how);
            return;
        }
        if (wide) {
            fold_store_values<UNITS>(at, x);
            return;
        }
        device_16 v = {};
        UNROLL
        for (unsigned u = 0; u < UNITS; u++)
            v.words[u / IN_WORD] |= Format::narrow(x[u]) << u % IN_WORD * BITS;
        store_16(at, v);
    }

    DEVICE value from_bits(uint64_t bits, bool wide)
    {
        return wide ? device_bits<float>((uint32_t)bits) : Format::widen((stored)bits);
    }

    DEVICE uint64_t to_bits(value x, bool wide)
    {
        return wide ? device_bits<uint32_t>(x) : (stored)Format::narrow(x);
    }
};

/* The types have the names of CUDA_FOLD_TYPES(). */
typedef fold_integer<uint8_t, int8_t> fold_of_i8;
typedef fold_integer<uint8_t, uint8_t> fold_of_u8;
typedef fold_integer<uint16_t, int16_t> fold_of_i16;
typedef fold_integer<uint16_t, uint16_t> fold_of_u16;
typedef fold_integer<uint32_t, int32_t> fold_of_i32;
typedef fold_integer<uint32_t, uint32_t> fold_of_u32;
typedef fold_integer<uint64_t, int64_t> fold_of_i64;
typedef fold_integer<uint64_t, uint64_t> fold_of_u64;
typedef fold_float<float, uint32_t> fold_of_f32;
typedef fold_float<double, uint64_t> fold_of_f64;
typedef fold_narrow<float16> fold_of_f16;
typedef fold_narrow<bfloat16> fold_of_bf16;
typedef fold_narrow<float8_e4m3> fold_of_e4m3;
typedef fold_narrow<float8_e5m2> fold_of_e5m2;

#endif
