/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_oracle.h"

#include <math.h>
#include <string.h>

bool oracle_is_half(ring_dtype dtype)
{
    return dtype == RING_FLOAT16 || dtype == RING_BFLOAT16 || dtype == RING_FLOAT8_E4M3 ||
           dtype == RING_FLOAT8_E5M2;
}

bool oracle_is_float(ring_dtype dtype)
{
    return oracle_is_half(dtype) || dtype == RING_FLOAT32 || dtype == RING_FLOAT64;
}

size_t oracle_size(ring_dtype dtype, bool accumulator)
{
    static const size_t sizes[RING_DTYPE_COUNT] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 2, 2};
    return accumulator && oracle_is_half(dtype) ? 4 : sizes[dtype];
}

static half_format format_of(ring_dtype dtype)
{
    switch (dtype) {
    case RING_FLOAT8_E4M3:
        return half_e4m3;
    case RING_FLOAT8_E5M2:
        return half_e5m2;
    default:
        return dtype == RING_FLOAT16 ? half_float16 : half_bfloat16;
    }
}

/* ---- Integers, as 128-bit numbers ---- */

typedef __int128 wide;

#define LOAD(type) \
    { \
        type x; \
        memcpy(&x, data, sizeof x); \
        return x; \
    }

static wide load_integer(const void *data, ring_dtype dtype)
{
    switch (dtype) {
    case RING_INT8:
        LOAD(int8_t)
    case RING_UINT8:
        LOAD(uint8_t)
    case RING_INT16:
        LOAD(int16_t)
    case RING_UINT16:
        LOAD(uint16_t)
    case RING_INT32:
        LOAD(int32_t)
    case RING_UINT32:
        LOAD(uint32_t)
    case RING_INT64:
        LOAD(int64_t)
    default:
        LOAD(uint64_t)
    }
}

/* The number of the type that is equal to @p x modulo 2^bits. */
static wide wrap(wide x, ring_dtype dtype)
{
    const uint64_t low = (uint64_t)x; /* little endian: the first bytes are the low ones */
    return load_integer(&low, dtype);
}

static wide combine_integers(wide a, wide b, ring_dtype dtype, ring_op op)
{
    switch (op) {
    case RING_PROD:
        return wrap((wide)((unsigned __int128)a * (unsigned __int128)b), dtype);
    case RING_MAX:
        return a > b ? a : b;
    case RING_MIN:
        return a > b ? b : a;
    case RING_BAND:
        return a & b;
    case RING_BOR:
        return a | b;
    case RING_BXOR:
        return a ^ b;
    case RING_LAND:
        return a != 0 && b != 0;
    case RING_LOR:
        return a != 0 || b != 0;
    case RING_LXOR:
        return (a != 0) != (b != 0);
    default:
        return wrap(a + b, dtype);
    }
}

/* ---- Floats ---- */

static double load_float(const void *data, ring_dtype dtype, bool accumulator)
{
    if (oracle_is_half(dtype) && !accumulator) {
        uint16_t half = 0;
        memcpy(&half, data, oracle_size(dtype, false)); /* little endian */
        return half_value(half, format_of(dtype));
    }
    if (dtype == RING_FLOAT64)
        LOAD(double)
    float x;
    memcpy(&x, data, sizeof x);
    return (double)x;
}

/* One IEEE operation of the accumulator type. A long double holds the sum, product or quotient
 * of two floats well enough that rounding it again to float is right. */
static double rounded_sum(double a, double b, bool wide_type)
{
    volatile double sum = a + b;
    return wide_type ? sum : (double)(float)((long double)a + (long double)b);
}

static double rounded_product(double a, double b, bool wide_type)
{
    volatile double product = a * b;
    return wide_type ? product : (double)(float)((long double)a * (long double)b);
}

static double rounded_quotient(double a, double b, bool wide_type)
{
    volatile double quotient = a / b;
    return wide_type ? quotient : (double)(float)((long double)a / (long double)b);
}

static bool below(double a, double b)
{
    return a < b || (a == b && signbit(a) && !signbit(b));
}

static double combine_floats(double a, double b, ring_op op, bool wide_type)
{
    if (isnan(a) || isnan(b))
        return nan("");
    switch (op) {
    case RING_PROD:
        return rounded_product(a, b, wide_type);
    case RING_MAX:
        return below(a, b) ? b : a;
    case RING_MIN:
        return below(b, a) ? b : a;
    default:
        return rounded_sum(a, b, wide_type);
    }
}

static void store_float(void *out, double x, ring_dtype dtype, bool accumulator)
{
    const size_t size = oracle_size(dtype, accumulator);
    const uint16_t half = half_bits(x, format_of(dtype));
    const float single = (float)x;
    memset(out, 0xff, size);
    if (isnan(x))
        return;
    memcpy(out, size == 8 ? (const void *)&x : size == 4 ? (const void *)&single : &half, size);
}

/* ---- Folds ---- */

static const void *element(const kernel_operand *in, size_t i, ring_dtype dtype)
{
    return (const char *)in->data + i * oracle_size(dtype, in->accumulator);
}

static void fold_integers(void *out, const kernel_operand *ins, int in_count, size_t i,
                          ring_dtype dtype, ring_op op, int divisor)
{
    wide x = load_integer(element(&ins[0], i, dtype), dtype);
    x = kernel_is_logical(op) ? x != 0 : x;
    for (int k = 1; k < in_count; k++)
        x = combine_integers(x, load_integer(element(&ins[k], i, dtype), dtype), dtype, op);
    if (divisor != 0)
        x /= divisor;
    memcpy(out, &x, oracle_size(dtype, false));
}

static void fold_floats(void *out, bool accumulator, const kernel_operand *ins, int in_count,
                        size_t i, ring_dtype dtype, ring_op op, int divisor)
{
    const bool wide_type = dtype == RING_FLOAT64;
    double x = load_float(element(&ins[0], i, dtype), dtype, ins[0].accumulator);
    for (int k = 1; k < in_count; k++) {
        const double next = load_float(element(&ins[k], i, dtype), dtype, ins[k].accumulator);
        x = combine_floats(x, next, op, wide_type);
    }
    if (divisor != 0)
        x = rounded_quotient(x, divisor, wide_type);
    store_float(out, x, dtype, accumulator);
}

void oracle_fold(void *out, bool accumulator, const kernel_operand *ins, int in_count, size_t i,
                 ring_dtype dtype, ring_op op, int divisor)
{
    if (oracle_is_float(dtype))
        fold_floats(out, accumulator, ins, in_count, i, dtype, op, divisor);
    else
        fold_integers(out, ins, in_count, i, dtype, op, divisor);
}

void oracle_scale(void *out, const void *data, size_t i, ring_dtype dtype, double by)
{
    const kernel_operand in = {.data = (void *)(uintptr_t)data};
    const double x = load_float(element(&in, i, dtype), dtype, false);
    const bool wide_type = dtype == RING_FLOAT64;
    const double factor = wide_type ? by : (double)(float)by;
    store_float(out, isnan(x) ? x : rounded_product(x, factor, wide_type), dtype, false);
}

/* ---- Data ---- */

uint64_t oracle_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* A float of any kind with the given layout, as bits. */
static uint64_t random_float(int mantissa, int exponent, uint64_t *state)
{
    const uint64_t r = oracle_random(state), sign = r >> 63, special = (1ull << exponent) - 1;
    const uint64_t fraction = oracle_random(state) & ((1ull << mantissa) - 1);
    uint64_t field = special / 2 + r % 9 - 4; /* a number about 1 */
    uint64_t bits = fraction;
    switch (r >> 8 & 31) {
    case 0: /* infinity or NaN, quiet or signalling */
        field = special;
        bits = r & 1 << 16 ? 0 : fraction;
        break;
    case 1: /* zero or subnormal */
        field = 0;
        bits = r & 1 << 16 ? 0 : fraction;
        break;
    case 2:
    case 3: /* any number */
        field = oracle_random(state) % special;
        break;
    case 4: /* one of few, so that equal ones meet */
        field = special / 2;
        bits = 0;
        break;
    default:
        break;
    }
    return ((sign << exponent | field) << mantissa) | bits;
}

static uint64_t random_element(ring_dtype dtype, bool accumulator, uint64_t *state)
{
    if (!oracle_is_float(dtype))
        return oracle_random(state);
    if (dtype == RING_FLOAT64)
        return random_float(52, 11, state);
    if (dtype == RING_FLOAT32 || accumulator)
        return random_float(23, 8, state);
    if (dtype == RING_FLOAT8_E4M3)
        return random_float(3, 4, state);
    if (dtype == RING_FLOAT8_E5M2)
        return random_float(2, 5, state);
    return dtype == RING_FLOAT16 ? random_float(10, 5, state) : random_float(7, 8, state);
}

void oracle_fill(void *data, size_t count, ring_dtype dtype, bool accumulator, uint64_t *state)
{
    const size_t size = oracle_size(dtype, accumulator);
    for (size_t i = 0; i < count; i++) {
        const uint64_t x = random_element(dtype, accumulator, state);
        memcpy((char *)data + i * size, &x, size);
    }
}
