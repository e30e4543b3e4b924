/* SPDX-License-Identifier: Apache-2.0
 * Scalar oracles. */
#include "collective_oracle.h"

#include "kernels/halves.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Inputs ---------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t noise(const oracle_case *c, int rank, size_t i)
{
    return mix(mix(c->seed * 1000003u + (unsigned)rank) ^ i % ORACLE_PERIOD);
}

bool oracle_is_float(ring_dtype dtype)
{
    return dtype >= RING_FLOAT16 && dtype <= RING_FLOAT8_E5M2;
}

static const half_format *format_of(ring_dtype dtype)
{
    static const half_format *const formats[RING_DTYPE_COUNT] = {[RING_FLOAT16] = &half_float16,
                                                                 [RING_BFLOAT16] = &half_bfloat16,
                                                                 [RING_FLOAT8_E4M3] = &half_e4m3,
                                                                 [RING_FLOAT8_E5M2] = &half_e5m2};
    return formats[dtype];
}

/* Sums of up to 64 values of at most 3 are below 256, exact even in bfloat16, and rounded once in 8
 * bits; products are of powers of two; an average is of equal values, whose sum does not wrap in 8
 * bits either. */
static double exact_value(const oracle_case *c, int rank, size_t i)
{
    const uint64_t r = noise(c, rank, i);
    switch (c->op) {
    case RING_PROD:
        return oracle_is_float(c->dtype) ? (double[]){0.5, 1, -1, 2}[r % 4] : (double)(1 + r % 2);
    case RING_AVG:
        return (double)(noise(c, 0, i) % (oracle_is_float(c->dtype) ? 4 : 2)); /* on all ranks */
    default:
        return (double)(r % 4);
    }
}

static double random_value(const oracle_case *c, int rank, size_t i)
{
    const double unit = (double)(noise(c, rank, i) >> 11) * 0x1p-53;
    return c->op == RING_PROD ? 0.8 + 0.4 * unit : 2 * unit - 1;
}

double oracle_factor(const oracle_case *c, int rank)
{
    if (c->op != RING_PREMUL_SUM)
        return 1;
    if (c->data == ORACLE_EXACT)
        return (double[]){2, -0.5, 1, 0}[rank % 4];
    return (rank % 2 == 0 ? 0.3 : -1.7) + 0.01 * rank;
}

/* ---- Elements ---------------------------------------------------------------------- */

static void put_float(ring_dtype dtype, void *at, size_t i, double x)
{
    switch (dtype) {
    case RING_FLOAT16:
    case RING_BFLOAT16:
        ((uint16_t *)at)[i] = half_bits(x, *format_of(dtype));
        break;
    case RING_FLOAT8_E4M3:
    case RING_FLOAT8_E5M2:
        ((uint8_t *)at)[i] = (uint8_t)half_bits(x, *format_of(dtype));
        break;
    case RING_FLOAT32:
        ((float *)at)[i] = (float)x;
        break;
    default:
        ((double *)at)[i] = x;
    }
}

static double get_float(ring_dtype dtype, const void *at, size_t i)
{
    switch (dtype) {
    case RING_FLOAT16:
    case RING_BFLOAT16:
        return half_value(((const uint16_t *)at)[i], *format_of(dtype));
    case RING_FLOAT8_E4M3:
    case RING_FLOAT8_E5M2:
        return half_value(((const uint8_t *)at)[i], *format_of(dtype));
    case RING_FLOAT32:
        return (double)((const float *)at)[i];
    default:
        return ((const double *)at)[i];
    }
}

static void put_int(ring_dtype dtype, void *at, size_t i, uint64_t x)
{
    memcpy((char *)at + i * ring_dtype_size(dtype), &x, ring_dtype_size(dtype)); /* wraps */
}

static int64_t get_int(ring_dtype dtype, const void *at, size_t i)
{
    switch (dtype) {
    case RING_INT8:
        return ((const int8_t *)at)[i];
    case RING_UINT8:
        return ((const uint8_t *)at)[i];
    case RING_INT16:
        return ((const int16_t *)at)[i];
    case RING_UINT16:
        return ((const uint16_t *)at)[i];
    case RING_INT32:
        return ((const int32_t *)at)[i];
    case RING_UINT32:
        return ((const uint32_t *)at)[i];
    default:
        return ((const int64_t *)at)[i]; /* uint64 compares by its bits where it matters */
    }
}

static void put_input(const oracle_case *c, int rank, void *at, size_t slot, size_t i)
{
    if (oracle_is_float(c->dtype))
        put_float(c->dtype, at, slot,
                  c->data == ORACLE_EXACT ? exact_value(c, rank, i) : random_value(c, rank, i));
    else
        put_int(c->dtype, at, slot,
                c->data == ORACLE_EXACT ? (uint64_t)exact_value(c, rank, i) : noise(c, rank, i));
}

void oracle_fill(const oracle_case *c, int rank, void *out, size_t first, size_t count)
{
    const size_t size = ring_dtype_size(c->dtype);
    const size_t unlike = count < ORACLE_PERIOD ? count : ORACLE_PERIOD;
    for (size_t i = 0; i < unlike; i++)
        put_input(c, rank, out, i, first + i);
    for (size_t done = unlike, more; done < count; done += more) {
        more = done < count - done ? done : count - done;
        memcpy((char *)out + done * size, out, more * size);
    }
}

/* ---- The specified order ------------------------------------------------------------- */

/* The block of element i when `total` is cut into `ranks` parts, longer ones first. */
static int block_of(const oracle_case *c, size_t i)
{
    if (c->block_count > 0)
        return (int)(i / c->block_count);
    const size_t ranks = (size_t)c->ranks, small = c->total / ranks, longer = c->total % ranks;
    const size_t edge = longer * (small + 1);
    return (int)(i < edge ? i / (small + 1) : longer + (i - edge) / small);
}

static void left_to_right(const oracle_case *c, int first, int *postfix)
{
    postfix[0] = first;
    for (int turn = 1; turn < c->ranks; turn++) {
        postfix[2 * turn - 1] = (first + turn) % c->ranks;
        postfix[2 * turn] = ORACLE_COMBINE;
    }
}

size_t oracle_rank_order(const oracle_case *c, size_t i, int *postfix)
{
    left_to_right(c, 0, postfix);
    return c->total;
}

size_t oracle_ring_order(const oracle_case *c, size_t i, int *postfix)
{
    const size_t blocks = (size_t)block_of(c, i) + 1, ranks = (size_t)c->ranks;
    left_to_right(c, (int)(blocks % ranks), postfix);
    if (c->block_count > 0)
        return blocks * c->block_count;
    const size_t longer = c->total % ranks;
    return blocks * (c->total / ranks) + (blocks < longer ? blocks : longer);
}

static float combine_f32(ring_op op, float a, float b)
{
    switch (op) {
    case RING_PROD:
        return a * b;
    case RING_MAX:
        return a > b ? a : b;
    case RING_MIN:
        return a < b ? a : b;
    default:
        return a + b;
    }
}

static double combine_f64(ring_op op, double a, double b)
{
    switch (op) {
    case RING_PROD:
        return a * b;
    case RING_MAX:
        return a > b ? a : b;
    case RING_MIN:
        return a < b ? a : b;
    default:
        return a + b;
    }
}

/* An input, or its product with the rank's factor: in the accumulator type, and rounded to the
 * type. */
static double factored(const oracle_case *c, int rank, size_t i)
{
    unsigned char raw[8];
    put_input(c, rank, raw, 0, i);
    const double x = get_float(c->dtype, raw, 0), factor = oracle_factor(c, rank);
    if (c->op != RING_PREMUL_SUM)
        return x;
    put_float(c->dtype, raw, 0,
              c->dtype == RING_FLOAT64 ? x * factor : (double)((float)x * (float)factor));
    return get_float(c->dtype, raw, 0);
}

/* Types of 8 and 16 bits and float32 combine in float32. */
typedef struct both_widths {
    double wide;
    float narrow;
} both_widths;

static both_widths float_of(const oracle_case *c, int rank, size_t i)
{
    const double x = factored(c, rank, i);
    return (both_widths){x, (float)x};
}

static void expected_float(const oracle_case *c, size_t i, const int *postfix, void *out)
{
    both_widths stack[ORACLE_MOST_RANKS];
    int depth = 0;
    for (int k = 0; k < 2 * c->ranks - 1; k++) {
        if (postfix[k] != ORACLE_COMBINE) {
            stack[depth++] = float_of(c, postfix[k], i);
            continue;
        }
        const both_widths right = stack[--depth], left = stack[depth - 1];
        stack[depth - 1] = (both_widths){combine_f64(c->op, left.wide, right.wide),
                                         combine_f32(c->op, left.narrow, right.narrow)};
    }
    both_widths sum = stack[0];
    if (c->op == RING_AVG)
        sum = (both_widths){sum.wide / c->ranks, sum.narrow / (float)c->ranks};
    put_float(c->dtype, out, 0, c->dtype == RING_FLOAT64 ? sum.wide : (double)sum.narrow);
}

static bool is_signed(ring_dtype dtype)
{
    return dtype == RING_INT8 || dtype == RING_INT16 || dtype == RING_INT32 || dtype == RING_INT64;
}

static uint64_t combine_int(const oracle_case *c, uint64_t a, uint64_t b)
{
    const bool less = is_signed(c->dtype) ? (int64_t)a < (int64_t)b : a < b;
    switch (c->op) {
    case RING_PROD:
        return a * b;
    case RING_MAX:
        return less ? b : a;
    case RING_MIN:
        return less ? a : b;
    default:
        return a + b;
    }
}

/* The same in any order. */
static void expected_int(const oracle_case *c, size_t i, void *out)
{
    unsigned char raw[8];
    uint64_t sum = 0;
    for (int rank = 0; rank < c->ranks; rank++) {
        put_input(c, rank, raw, 0, i);
        const uint64_t x = (uint64_t)get_int(c->dtype, raw, 0);
        sum = rank == 0 ? x : combine_int(c, sum, x);
        put_int(c->dtype, raw, 0, sum); /* wraps at the type's width */
        sum = (uint64_t)get_int(c->dtype, raw, 0);
    }
    if (c->op == RING_AVG)
        sum = is_signed(c->dtype) ? (uint64_t)((int64_t)sum / c->ranks) : sum / (uint64_t)c->ranks;
    put_int(c->dtype, out, 0, sum);
}

/* ---- Exact data: the value itself, whatever the order ----------------------------------- */

static void exact_result(const oracle_case *c, size_t i, void *out)
{
    double x = exact_value(c, 0, i) * oracle_factor(c, 0);
    for (int r = 1; r < c->ranks && c->op != RING_AVG; r++)
        x = combine_f64(c->op, x, exact_value(c, r, i) * oracle_factor(c, r));
    if (oracle_is_float(c->dtype))
        put_float(c->dtype, out, 0, x);
    else
        put_int(c->dtype, out, 0, (uint64_t)x);
}

/* ---- The bound ------------------------------------------------------------------------ */

/* Additions and the division are of the accumulator type, the last rounding is to the type, where
 * neighbours are no closer than its least number. */
static bool within_bound(const oracle_case *c, size_t i, double got)
{
    static const struct {
        double unit, least;
    } last[RING_DTYPE_COUNT] = {[RING_FLOAT16] = {0x1p-11, 0x1p-24},
                                [RING_BFLOAT16] = {0x1p-8, 0x1p-133},
                                [RING_FLOAT8_E4M3] = {0x1p-4, 0x1p-9},
                                [RING_FLOAT8_E5M2] = {0x1p-3, 0x1p-16}};
    long double sum = 0, size = 0;
    for (int r = 0; r < c->ranks; r++) {
        const long double x = (long double)factored(c, r, i);
        sum += x;
        size += fabsl(x);
    }
    if (c->op == RING_AVG) {
        sum /= c->ranks;
        size /= c->ranks;
    }
    const long double u = c->dtype == RING_FLOAT64 ? 0x1p-53L : 0x1p-24L;
    const long double roundings = c->ranks + 1;
    const long double error = roundings * u / (1 - roundings * u) * size;
    const long double rounding = (long double)last[c->dtype].unit * (fabsl(sum) + error) +
                                 (long double)last[c->dtype].least / 2;
    return fabsl((long double)got - sum) <= error + rounding;
}

/* ---- Comparing ------------------------------------------------------------------------ */

static void show(const oracle_case *c, size_t i, const void *got, const void *want)
{
    const bool real = oracle_is_float(c->dtype);
    fprintf(stderr, "element %zu of %zu: got %.17g, want %.17g\n", i, c->total,
            real ? get_float(c->dtype, got, 0) : (double)get_int(c->dtype, got, 0),
            real ? get_float(c->dtype, want, 0) : (double)get_int(c->dtype, want, 0));
}

/* @p want has the first elements, at most a period of them; the others repeat it. */
static bool is_repeated(const oracle_case *c, const char *got, const char *want, size_t first,
                        size_t count)
{
    const size_t size = ring_dtype_size(c->dtype);
    for (size_t done = 0; done < count; done += ORACLE_PERIOD) {
        const size_t part = count - done < ORACLE_PERIOD ? count - done : ORACLE_PERIOD;
        size_t i = 0;
        if (memcmp(got + done * size, want, part * size) == 0)
            continue;
        while (memcmp(got + (done + i) * size, want + i * size, size) == 0)
            i++;
        show(c, first + done + i, got + (done + i) * size, want + i * size);
        return false;
    }
    return true;
}

bool oracle_is_input(const oracle_case *c, int rank, const void *got, size_t first, size_t count)
{
    char want[8 * ORACLE_PERIOD];
    oracle_fill(c, rank, want, first, count < ORACLE_PERIOD ? count : ORACLE_PERIOD);
    return is_repeated(c, got, want, first, count);
}

/* Writes the right result of element i. @return false if it is out of its bound, so that the
 * oracle itself is wrong. */
static bool expect(const oracle_case *c, size_t i, const int *postfix, void *want)
{
    if (c->data == ORACLE_EXACT)
        exact_result(c, i, want);
    else if (!oracle_is_float(c->dtype))
        expected_int(c, i, want);
    else
        expected_float(c, i, postfix, want);
    const bool adds = c->op == RING_SUM || c->op == RING_AVG || c->op == RING_PREMUL_SUM;
    if (!adds || !oracle_is_float(c->dtype) || within_bound(c, i, get_float(c->dtype, want, 0)))
        return true;
    fprintf(stderr, "element %zu of %zu: the specified order gives %g, out of the bound\n", i,
            c->total, get_float(c->dtype, want, 0));
    return false;
}

bool oracle_is_reduced(const oracle_case *c, const void *got, size_t first, size_t count)
{
    const size_t size = ring_dtype_size(c->dtype);
    char want[8 * ORACLE_PERIOD];
    int postfix[2 * ORACLE_MOST_RANKS];
    for (size_t at = first, end; at < first + count; at = end) {
        end = c->order(c, at, postfix);
        end = end < first + count ? end : first + count;
        for (size_t i = 0; i < end - at && i < ORACLE_PERIOD; i++)
            if (!expect(c, at + i, postfix, want + i * size))
                return false;
        if (!is_repeated(c, (const char *)got + (at - first) * size, want, at, end - at))
            return false;
    }
    return true;
}
