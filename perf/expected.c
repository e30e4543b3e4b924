/* SPDX-License-Identifier: Apache-2.0
 *
 * expected: computes inputs and expected outputs. Each input element is one of 256 numbers, chosen
 * by a hash of (rank, index, repetition), so that a chunk that is shifted, stale, missing or
 * counted twice gives wrong values.
 *
 * The numbers are chosen so that results are exact in any combining order:
 *  - for sums, whole numbers k * step with |k| <= 128. The step makes the numbers use many digits
 * of the type, but their sums still fit. (Integers wrap around, as in the library.) Floats of 8
 * bits are whole numbers from -8 to 8, whose sums are exact in float32, and are rounded once;
 *  - for products of floats, 1 and -1, and for the first ranks also 1/2 and 2, so that no product
 *    is rounded; for products of integers, odd numbers, so that no product becomes 0.
 * So this file can combine in double or in 64-bit integers, one rank after the other.
 */
#include "expected.h"
#include "names.h"
#include "narrow.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define NUMBERS 256
#define BLOCK 1024
#define SCALED_RANKS 8 /* ranks that multiply by 2 or 1/2: 2^8 is finite in every type */

typedef union number {
    double real;
    uint64_t whole;
} number;

double perf_oracle_factor(int rank)
{
    return rank % 2 == 0 ? 2 : -0.5;
}

static uint32_t seed_of(const perf_oracle *oracle, int rank)
{
    uint32_t h = (uint32_t)rank * 0x9e3779b1u + oracle->repetition * 0x85ebca77u + 0x27d4eb2fu;
    h = (h ^ h >> 16) * 0x7feb352du;
    return h ^ h >> 15;
}

/* Chooses one of the 256 numbers. The hash is well mixed and fast, because it runs for every
 * element. */
static inline uint32_t pick(uint32_t seed, size_t index)
{
    uint32_t h = ((uint32_t)index ^ (uint32_t)(index >> 32) * 0xc2b2ae35u) * 0x9e3779b1u + seed;
    h = (h ^ h >> 15) * 0x85ebca6bu;
    return h >> 24;
}

/* @return number @p j of the 256 numbers of a rank. */
static number number_of(const perf_oracle *oracle, int rank, int j)
{
    static const double steps[RING_DTYPE_COUNT] = {[RING_FLOAT16] = 1,
                                                   [RING_BFLOAT16] = 1,
                                                   [RING_FLOAT32] = 37,
                                                   [RING_FLOAT64] = 0x1.8p30 + 5};
    const int k = j - NUMBERS / 2;
    const bool multiplies = oracle->op == RING_PROD;
    if (perf_is_float(oracle->dtype) && multiplies) {
        const double size = rank >= SCALED_RANKS ? 1.0 : j & 2 ? 2.0 : j & 4 ? 0.5 : 1.0;
        return (number){.real = j & 1 ? -size : size};
    }
    if (ring_dtype_size(oracle->dtype) == 1 && perf_is_float(oracle->dtype))
        return (number){.real = j % 17 - 8};
    if (perf_is_float(oracle->dtype))
        return (number){.real = k * steps[oracle->dtype]};
    const uint64_t step = 0x0101010101010101u; /* k in every byte, so that each byte is tested */
    return (number){.whole = multiplies ? 2 * (uint64_t)k + 1 : (uint64_t)k * step};
}

/* ---- A number as an element ---- */

static void store_whole(uint64_t value, size_t size, void *out)
{
    memcpy(out, &value, size); /* on little-endian CPUs the low bytes are the wrapped value */
}

static void store_real(double value, ring_dtype dtype, void *out)
{
    const float single = (float)value;
    switch (dtype) {
    case RING_FLOAT64:
        memcpy(out, &value, sizeof value);
        break;
    case RING_FLOAT32:
        memcpy(out, &single, sizeof single);
        break;
    case RING_FLOAT8_E4M3:
        *(uint8_t *)out = perf_to_float8_e4m3(single);
        break;
    case RING_FLOAT8_E5M2:
        *(uint8_t *)out = perf_to_float8_e5m2(single);
        break;
    default:
        *(uint16_t *)out = dtype == RING_FLOAT16 ? perf_to_float16(single)
                                                 : perf_to_bfloat16(single);
        break;
    }
}

static void store(const perf_oracle *oracle, number value, void *out)
{
    if (perf_is_float(oracle->dtype))
        store_real(value.real, oracle->dtype, out);
    else
        store_whole(value.whole, ring_dtype_size(oracle->dtype), out);
}

/* ---- Inputs ---- */

#define FILL(bits) \
    static void fill_##bits(uint32_t seed, size_t first, size_t count, const unsigned char *table, \
                            void *out) \
    { \
        const uint##bits##_t *numbers = (const void *)table; \
        uint##bits##_t *elements = out; \
        for (size_t i = 0; i < count; i++) \
            elements[i] = numbers[pick(seed, first + i)]; \
    }
FILL(8)
FILL(16)
FILL(32)
FILL(64)

/* Fills with a table of all 256 numbers. */
static void fill_many(const perf_oracle *oracle, int rank, size_t first, size_t count, void *out)
{
    _Alignas(8) unsigned char table[NUMBERS * 8];
    const size_t size = ring_dtype_size(oracle->dtype);
    for (int j = 0; j < NUMBERS; j++)
        store(oracle, number_of(oracle, rank, j), table + (size_t)j * size);
    const uint32_t seed = seed_of(oracle, rank);
    switch (size) {
    case 1:
        fill_8(seed, first, count, table, out);
        break;
    case 2:
        fill_16(seed, first, count, table, out);
        break;
    case 4:
        fill_32(seed, first, count, table, out);
        break;
    default:
        fill_64(seed, first, count, table, out);
        break;
    }
}

void perf_oracle_fill(const perf_oracle *oracle, int rank, size_t first, size_t count, void *out)
{
    if (count >= NUMBERS) {
        fill_many(oracle, rank, first, count, out);
        return;
    }
    /* For few elements, a table would take longer than the call that is measured. */
    const size_t size = ring_dtype_size(oracle->dtype);
    const uint32_t seed = seed_of(oracle, rank);
    for (size_t i = 0; i < count; i++)
        store(oracle, number_of(oracle, rank, (int)pick(seed, first + i)),
              (unsigned char *)out + i * size);
}

/* ---- Outputs ---- */

static size_t differing(const unsigned char *data, const unsigned char *wanted, size_t count,
                        size_t size)
{
    size_t wrong = 0;
    if (memcmp(data, wanted, count * size) == 0)
        return 0;
    for (size_t at = 0; at < count * size; at += size)
        wrong += memcmp(data + at, wanted + at, size) != 0;
    return wrong;
}

size_t perf_oracle_check_copy(const perf_oracle *oracle, int rank, size_t first, size_t count,
                              const void *data)
{
    _Alignas(8) unsigned char wanted[BLOCK * 8];
    const size_t size = ring_dtype_size(oracle->dtype);
    size_t wrong = 0;
    for (size_t done = 0; done < count; done += BLOCK) {
        const size_t part = count - done < BLOCK ? count - done : BLOCK;
        perf_oracle_fill(oracle, rank, first + done, part, wanted);
        wrong += differing((const unsigned char *)data + done * size, wanted, part, size);
    }
    return wrong;
}

static bool is_signed(ring_dtype dtype)
{
    return dtype == RING_INT8 || dtype == RING_INT16 || dtype == RING_INT32 || dtype == RING_INT64;
}

/* @return true if a is less than b, compared as integers of the type. */
static bool whole_less(uint64_t a, uint64_t b, ring_dtype dtype)
{
    const int unused = 64 - 8 * (int)ring_dtype_size(dtype);
    const uint64_t x = a << unused, y = b << unused; /* moves the type's top bit to the top */
    return is_signed(dtype) ? (int64_t)x < (int64_t)y : x < y;
}

/* @return true if any of the type's bits is set. */
static bool whole_truth(uint64_t a, ring_dtype dtype)
{
    return a << (64 - 8 * (int)ring_dtype_size(dtype)) != 0;
}

static uint64_t combine_whole(const perf_oracle *oracle, uint64_t a, uint64_t b)
{
    switch (oracle->op) {
    case RING_PROD:
        return a * b;
    case RING_MIN:
        return whole_less(b, a, oracle->dtype) ? b : a;
    case RING_MAX:
        return whole_less(a, b, oracle->dtype) ? b : a;
    case RING_BAND:
        return a & b;
    case RING_BOR:
        return a | b;
    case RING_BXOR:
        return a ^ b;
    case RING_LAND:
        return whole_truth(a, oracle->dtype) && whole_truth(b, oracle->dtype);
    case RING_LOR:
        return whole_truth(a, oracle->dtype) || whole_truth(b, oracle->dtype);
    case RING_LXOR:
        return whole_truth(a, oracle->dtype) != whole_truth(b, oracle->dtype);
    default:
        return a + b;
    }
}

static double combine_real(ring_op op, double a, double b)
{
    switch (op) {
    case RING_PROD:
        return a * b;
    case RING_MIN:
        return b < a ? b : a;
    case RING_MAX:
        return b > a ? b : a;
    default:
        return a + b;
    }
}

/* Combines the numbers of one more rank into @p sums; rank 0 comes first and sets them. */
static void combine_rank(const perf_oracle *oracle, int rank, size_t first, size_t count,
                         number *sums)
{
    number table[NUMBERS];
    for (int j = 0; j < NUMBERS; j++)
        table[j] = number_of(oracle, rank, j);
    for (int j = 0; oracle->op == RING_PREMUL_SUM && j < NUMBERS; j++)
        table[j].real *= perf_oracle_factor(rank);
    const uint32_t seed = seed_of(oracle, rank);
    const bool real = perf_is_float(oracle->dtype);
    for (size_t i = 0; i < count; i++) {
        const number next = table[pick(seed, first + i)];
        if (rank == 0)
            sums[i] = next;
        else if (real)
            sums[i].real = combine_real(oracle->op, sums[i].real, next.real);
        else
            sums[i].whole = combine_whole(oracle, sums[i].whole, next.whole);
    }
}

/* @return the wrapped sum, divided and rounded towards zero. */
static uint64_t whole_mean(uint64_t sum, int ranks, ring_dtype dtype)
{
    const int unused = 64 - 8 * (int)ring_dtype_size(dtype);
    if (!is_signed(dtype))
        return (sum << unused >> unused) / (uint64_t)ranks;
    return (uint64_t)(((int64_t)(sum << unused) >> unused) / ranks);
}

/* Stores the combined number as an element of the output. Logical operations give 0 or 1 even for
 * the input of a single rank. An average is divided in float32, or in float64 for that type. */
static void finish(const perf_oracle *oracle, number sum, void *out)
{
    if (oracle->op >= RING_LAND && oracle->op <= RING_LXOR)
        sum.whole = whole_truth(sum.whole, oracle->dtype);
    if (oracle->op != RING_AVG)
        store(oracle, sum, out);
    else if (perf_is_float(oracle->dtype))
        store_real(oracle->dtype == RING_FLOAT64 ? sum.real / oracle->ranks
                                                 : (double)((float)sum.real / (float)oracle->ranks),
                   oracle->dtype, out);
    else
        store_whole(whole_mean(sum.whole, oracle->ranks, oracle->dtype),
                    ring_dtype_size(oracle->dtype), out);
}

size_t perf_oracle_check_reduced(const perf_oracle *oracle, size_t first, size_t count,
                                 const void *data)
{
    number sums[BLOCK];
    _Alignas(8) unsigned char wanted[BLOCK * 8];
    const size_t size = ring_dtype_size(oracle->dtype);
    size_t wrong = 0;
    for (size_t done = 0; done < count; done += BLOCK) {
        const size_t part = count - done < BLOCK ? count - done : BLOCK;
        for (int rank = 0; rank < oracle->ranks; rank++)
            combine_rank(oracle, rank, first + done, part, sums);
        for (size_t i = 0; i < part; i++)
            finish(oracle, sums[i], wanted + i * size);
        wrong += differing((const unsigned char *)data + done * size, wanted, part, size);
    }
    return wrong;
}
