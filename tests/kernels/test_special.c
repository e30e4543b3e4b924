/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules for special values, each in so many words: NaN, infinities, zeros, subnormals,
 * integers that wrap. Every case is run at each place of an array, in vectors and after. */

#include "unit_test.h"

#include "kernel_oracle.h"
#include "kernels.h"
#include "simd_level.h"

#include <math.h>
#include <string.h>

enum { N = 150 };

static const uint32_t quiet_nan = 0x7fc01234, signalling_nan = 0xff801234, nan_result = 0xffffffff;
static const uint32_t infinity = 0x7f800000, minus_infinity = 0xff800000;
static const uint32_t zero = 0, minus_zero = 0x80000000, one = 0x3f800000;

static void expect_f32(ring_op op, uint32_t a, uint32_t b, int divisor, uint32_t want)
{
    uint32_t x[N], y[N], out[N];
    for (int i = 0; i < N; i++) {
        x[i] = a;
        y[i] = b;
    }
    kernel_fold(&(kernel_operand){.data = out}, 1, (kernel_operand[]){{.data = x}, {.data = y}}, 2,
                N, RING_FLOAT32, op, divisor);
    for (int i = 0; i < N; i++)
        if (out[i] != want)
            fail_msg("op %d of %08x and %08x at %d: %08x, not %08x", op, a, b, i, out[i], want);
}

static void expect_either_order(ring_op op, uint32_t a, uint32_t b, uint32_t want)
{
    expect_f32(op, a, b, 0, want);
    expect_f32(op, b, a, 0, want);
}

static void test_any_nan_gives_the_nan_of_all_ones(void **state)
{
    const uint32_t others[] = {zero, minus_zero, one, infinity, minus_infinity, quiet_nan, 1};
    for (ring_op op = 0; op <= RING_AVG; op++)
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            expect_either_order(op, quiet_nan, others[i], nan_result);
            expect_either_order(op, signalling_nan, others[i], nan_result);
        }
    expect_either_order(RING_SUM, infinity, minus_infinity, nan_result);
    expect_either_order(RING_PROD, infinity, zero, nan_result);
}

static void test_minus_zero_is_below_zero_in_any_order(void **state)
{
    expect_either_order(RING_MIN, zero, minus_zero, minus_zero);
    expect_either_order(RING_MAX, zero, minus_zero, zero);
    expect_either_order(RING_MIN, minus_zero, minus_zero, minus_zero);
    expect_either_order(RING_MAX, minus_zero, minus_zero, minus_zero);
    expect_either_order(RING_SUM, zero, minus_zero, zero);
    expect_either_order(RING_SUM, minus_zero, minus_zero, minus_zero);
}

static void test_infinities_order_and_absorb(void **state)
{
    expect_either_order(RING_MAX, infinity, one, infinity);
    expect_either_order(RING_MIN, infinity, one, one);
    expect_either_order(RING_MIN, minus_infinity, infinity, minus_infinity);
    expect_either_order(RING_SUM, infinity, one, infinity);
    expect_either_order(RING_SUM, 0x7f7fffff, 0x7f7fffff, infinity);
}

static void test_subnormals_are_not_flushed(void **state)
{
    expect_f32(RING_SUM, 1, 2, 0, 3);
    expect_f32(RING_MIN, 1, zero, 0, zero);
    expect_f32(RING_MAX, 1, 2, 0, 2);
    expect_f32(RING_PROD, 0x00800000, 0x3f000000, 0, 0x00400000);
    expect_f32(RING_AVG, 3, 3, 2, 3);
}

static void expect_average_of_equals(void *values, size_t bytes, ring_dtype dtype, int n)
{
    kernel_operand in[KERNEL_MAX_INPUTS];
    double average[N]; /* as long as any type */
    for (int k = 0; k < n; k++)
        in[k] = (kernel_operand){.data = values};
    kernel_fold(&(kernel_operand){.data = average}, 1, in, n, N, dtype, RING_AVG, n);
    if (memcmp(average, values, bytes) != 0)
        fail_msg("dtype %d: the average of %d equal values is another value", dtype, n);
}

/* Whole numbers, whose sums are exact: a product with 1/n would round twice. */
static void test_average_of_equal_values_is_the_value(void **state)
{
    float f32[N];
    double f64[N];
    uint16_t f16[N], bf16[N];
    for (int i = 0; i < N; i++)
        f32[i] = (float)(f64[i] = i - N / 2);
    kernel_f32_to_f16(f16, f32, N);
    kernel_f32_to_bf16(bf16, f32, N);
    for (int n = 1; n <= KERNEL_MAX_INPUTS; n++) {
        expect_average_of_equals(f32, sizeof f32, RING_FLOAT32, n);
        expect_average_of_equals(f64, sizeof f64, RING_FLOAT64, n);
        expect_average_of_equals(f16, sizeof f16, RING_FLOAT16, n);
        expect_average_of_equals(bf16, sizeof bf16, RING_BFLOAT16, n);
    }
}

static void test_halves_round_once_after_the_last_input(void **state)
{
    /* 2048 + 1 + 1: float16 holds 2048 and 2050, but not 2049. */
    uint16_t big = 0x6800, unit = 0x3c00, out = 0;
    float wide = 0;
    const kernel_operand in[] = {{.data = &big}, {.data = &unit}, {.data = &unit}};
    kernel_operand outs[] = {{.data = &out}, {.data = &wide, .accumulator = true}};
    kernel_fold(outs, 2, in, 3, 1, RING_FLOAT16, RING_SUM, 0);
    assert_int_equal(out, 0x6801);
    assert_true(wide == 2050);
}

/* ---- Floats of 8 bits, of which all are tried -------------------------------------------------
 */

typedef struct quarter_type {
    ring_dtype dtype;
    half_format format;
} quarter_type;

static uint8_t rounded(ring_dtype dtype, float x)
{
    uint8_t out = 0;
    const kernel_operand in = {.data = &x, .accumulator = true};
    kernel_fold(&(kernel_operand){.data = &out}, 1, &in, 1, 1, dtype, RING_SUM, 0);
    return out;
}

static void expect_rounded(quarter_type type, float x)
{
    const uint8_t got = rounded(type.dtype, x), wanted = (uint8_t)half_bits((double)x, type.format);
    if (got != wanted && !isnan(x))
        fail_msg("%s of %a: %02x, not %02x", type.dtype == RING_FLOAT8_E5M2 ? "e5m2" : "e4m3",
                 (double)x, got, wanted);
    if (isnan(x))
        assert_int_equal(got & 0x7f, 0x7f);
}

/* Each number, the middle between it and the next one, and what lies just beside these. */
static void check_neighbours(quarter_type type, double value, double next)
{
    const float points[] = {(float)value, (float)((value + next) / 2)};
    for (size_t p = 0; p < 2; p++) {
        const float x = points[p];
        expect_rounded(type, x);
        expect_rounded(type, nextafterf(x, -INFINITY));
        expect_rounded(type, nextafterf(x, INFINITY));
        expect_rounded(type, -x);
        expect_rounded(type, nextafterf(-x, INFINITY));
    }
}

static void check_all_quarters(quarter_type type)
{
    uint8_t all[256];
    float wide[256];
    for (int i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    const kernel_operand in = {.data = all};
    kernel_fold(&(kernel_operand){.data = wide, .accumulator = true}, 1, &in, 1, 256, type.dtype,
                RING_SUM, 0);
    for (int i = 0; i < 256; i++) {
        const double value = half_value((uint16_t)i, type.format);
        assert_true(isnan(value) ? isnan(wide[i]) : (double)wide[i] == value);
        assert_int_equal(signbit(wide[i]) != 0 && !isnan(value), i > 127 && !isnan(value));
    }
    for (int i = 0; i < type.format.largest; i++)
        check_neighbours(type, half_value((uint16_t)i, type.format),
                         half_value((uint16_t)(i + 1), type.format));
}

static void test_floats_of_8_bits_are_right_everywhere(void **state)
{
    const quarter_type types[] = {{RING_FLOAT8_E4M3, half_e4m3}, {RING_FLOAT8_E5M2, half_e5m2}};
    uint64_t random = 5;
    for (size_t t = 0; t < 2; t++) {
        check_all_quarters(types[t]);
        for (int i = 0; i < 1000000; i++) {
            const uint32_t bits = (uint32_t)oracle_random(&random);
            float x;
            memcpy(&x, &bits, sizeof x);
            expect_rounded(types[t], x);
        }
    }
    assert_true(half_value(0x7e, half_e4m3) == 448 && half_value(0x7b, half_e5m2) == 57344);
    assert_true(half_value(0x01, half_e4m3) == 0x1p-9 && half_value(0x01, half_e5m2) == 0x1p-16);
    assert_int_equal(rounded(RING_FLOAT8_E4M3, INFINITY), 0x7e); /* as NCCL's */
    assert_int_equal(rounded(RING_FLOAT8_E5M2, -INFINITY), 0xfb);
    assert_int_equal(rounded(RING_FLOAT8_E4M3, 1e30F), 0x7e);
    assert_int_equal(rounded(RING_FLOAT8_E5M2, -1e-30F), 0x80);
}

static void test_integers_wrap_and_divide_towards_zero(void **state)
{
    int8_t a[N], b[N], sum[N];
    int32_t c[N], d[N], average[N];
    for (int i = 0; i < N; i++) {
        a[i] = 127;
        b[i] = 2;
        c[i] = -4;
        d[i] = -3;
    }
    kernel_fold(&(kernel_operand){.data = sum}, 1, (kernel_operand[]){{.data = a}, {.data = b}}, 2,
                N, RING_INT8, RING_SUM, 0);
    kernel_fold(&(kernel_operand){.data = average}, 1, (kernel_operand[]){{.data = c}, {.data = d}},
                2, N, RING_INT32, RING_AVG, 2);
    for (int i = 0; i < N; i++) {
        assert_int_equal(sum[i], -127);
        assert_int_equal(average[i], -3);
    }
}

static void test_signed_and_unsigned_order_differ(void **state)
{
    uint64_t a = UINT64_MAX, b = 1, out = 0;
    const kernel_operand in[] = {{.data = &a}, {.data = &b}};
    kernel_fold(&(kernel_operand){.data = &out}, 1, in, 2, 1, RING_UINT64, RING_MAX, 0);
    assert_true(out == UINT64_MAX);
    kernel_fold(&(kernel_operand){.data = &out}, 1, in, 2, 1, RING_INT64, RING_MAX, 0);
    assert_true(out == 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_nan_gives_the_nan_of_all_ones),
        cmocka_unit_test(test_minus_zero_is_below_zero_in_any_order),
        cmocka_unit_test(test_infinities_order_and_absorb),
        cmocka_unit_test(test_subnormals_are_not_flushed),
        cmocka_unit_test(test_average_of_equal_values_is_the_value),
        cmocka_unit_test(test_halves_round_once_after_the_last_input),
        cmocka_unit_test(test_floats_of_8_bits_are_right_everywhere),
        cmocka_unit_test(test_integers_wrap_and_divide_towards_zero),
        cmocka_unit_test(test_signed_and_unsigned_order_differ),
    };
    level_from_arguments(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
