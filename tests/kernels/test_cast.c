/* SPDX-License-Identifier: Apache-2.0
 *
 * Casts: every 16-bit pattern to float32, and to 16 bits every number, every boundary
 * between two neighbours and what lies just beside it, NaNs, random bits. */

#include "unit_test.h"

#include "kernel_oracle.h"
#include "simd_level.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERNS = 1 << 16, RANDOM = 1 << 20 };

typedef struct cast {
    half_format format;
    void (*widen)(float *dst, const uint16_t *src, size_t count);
    void (*narrow)(uint16_t *dst, const float *src, size_t count);
} cast;

static const cast f16 = {{.sign = 0x8000, .mantissa = 10, .min_exponent = -14},
                         kernel_f16_to_f32,
                         kernel_f32_to_f16};
static const cast bf16 = {{.sign = 0x8000, .mantissa = 7, .min_exponent = -126},
                          kernel_bf16_to_f32,
                          kernel_f32_to_bf16};

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A NaN moves its payload to the top and becomes quiet. */
static uint32_t widened(const cast *c, uint16_t half)
{
    const double value = half_value(half, c->format);
    const uint32_t fraction = half & ((1u << c->format.mantissa) - 1);
    if (isnan(value))
        return (uint32_t)(half & 0x8000) << 16 | 0x7fc00000 | fraction << (23 - c->format.mantissa);
    return bits_of((float)value);
}

static void check_all_patterns_widen(const cast *c)
{
    static uint16_t halves[PATTERNS];
    static float floats[PATTERNS];
    for (unsigned i = 0; i < PATTERNS; i++)
        halves[i] = (uint16_t)i;
    for (size_t from = 0; from < 3; from++) { /* so that each pattern meets vector and rest */
        c->widen(floats, halves + from, PATTERNS - from);
        for (unsigned i = 0; i < PATTERNS - from; i++)
            assert_int_equal(bits_of(floats[i]), widened(c, halves[i + from]));
    }
    for (unsigned i = 0; i < PATTERNS; i++) {
        c->widen(floats, halves + i, 1);
        assert_int_equal(bits_of(floats[0]), widened(c, (uint16_t)i));
    }
}

static void check_narrow(const cast *c, const float *floats, size_t count)
{
    uint16_t *halves = malloc(count * sizeof *halves);
    assert_non_null(halves);
    c->narrow(halves, floats, count);
    for (size_t i = 0; i < count; i++) {
        uint16_t alone;
        c->narrow(&alone, floats + i, 1);
        if (isnan(floats[i])) {
            assert_true(isnan(half_value(halves[i], c->format)));
            assert_int_not_equal(halves[i] & (1 << (c->format.mantissa - 1)), 0);
        } else if (halves[i] != half_bits((double)floats[i], c->format)) {
            fail_msg("%a (%08x) became %04x, not %04x", (double)floats[i], bits_of(floats[i]),
                     halves[i], half_bits((double)floats[i], c->format));
        }
        assert_int_equal(alone, halves[i]);
    }
    free(halves);
}

/* Each number, the boundary above it, and the nearest floats of both. */
static void check_all_boundaries_narrow(const cast *c)
{
    enum { EACH = 6 };
    static float floats[PATTERNS * EACH];
    size_t count = 0;
    const uint16_t largest = (uint16_t)(0x7fff - (1 << c->format.mantissa));
    for (unsigned i = 0; i <= largest; i++) {
        const double number = half_value((uint16_t)i, c->format);
        const double below_top = half_value((uint16_t)(i - 1), c->format);
        const double next = i < largest ? half_value((uint16_t)(i + 1), c->format)
                                        : number + (number - below_top);
        const float value = (float)number, middle = (float)((number + next) / 2);
        const float beside[EACH] = {nextafterf(value, -1),  value,  nextafterf(value, INFINITY),
                                    nextafterf(middle, -1), middle, nextafterf(middle, INFINITY)};
        for (int k = 0; k < EACH; k++)
            floats[count++] = i % 2 ? beside[k] : -beside[k];
    }
    check_narrow(c, floats, count);
    for (size_t i = 0; i < count; i++)
        floats[i] = -floats[i];
    check_narrow(c, floats, count);
}

static void check_random_bits_narrow(const cast *c)
{
    static float floats[RANDOM];
    uint64_t state = 7;
    for (size_t i = 0; i < RANDOM; i++)
        floats[i] = float_of((uint32_t)oracle_random(&state));
    check_narrow(c, floats, RANDOM);
}

static void check_numbers_survive_both_ways(const cast *c)
{
    static float wide[PATTERNS];
    static uint16_t halves[PATTERNS], back[PATTERNS];
    for (unsigned i = 0; i < PATTERNS; i++)
        halves[i] = (uint16_t)i;
    c->widen(wide, halves, PATTERNS);
    c->narrow(back, wide, PATTERNS);
    for (unsigned i = 0; i < PATTERNS; i++)
        if (!isnan(wide[i]))
            assert_int_equal(back[i], i);
}

static void test_every_f16_pattern_widens(void **state)
{
    check_all_patterns_widen(&f16);
}

static void test_every_bf16_pattern_widens(void **state)
{
    check_all_patterns_widen(&bf16);
}

static void test_every_f16_boundary_rounds_to_even(void **state)
{
    check_all_boundaries_narrow(&f16);
}

static void test_every_bf16_boundary_rounds_to_even(void **state)
{
    check_all_boundaries_narrow(&bf16);
}

static void test_random_floats_narrow(void **state)
{
    check_random_bits_narrow(&f16);
    check_random_bits_narrow(&bf16);
}

static void test_numbers_survive_both_ways(void **state)
{
    check_numbers_survive_both_ways(&f16);
    check_numbers_survive_both_ways(&bf16);
}

static void test_narrowed_nan_has_the_documented_bits(void **state)
{
    float nans[40];
    uint16_t halves[40];
    for (unsigned i = 0; i < 40; i++)
        nans[i] = float_of((i % 2 ? 0x80000000 : 0) | 0x7f800001 | i << 13);
    kernel_f32_to_f16(halves, nans, 40);
    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(halves[i], (i % 2 ? 0x8000 : 0) | 0x7e00 | i);
    kernel_f32_to_bf16(halves, nans, 40);
    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(halves[i], 0xffff);
}

static void test_each_length_writes_only_its_elements(void **state)
{
    float floats[101];
    uint16_t halves[101];
    for (size_t count = 0; count < 100; count++) {
        memset(floats, 0, sizeof floats);
        memset(halves, 0xa5, sizeof halves);
        kernel_f32_to_f16(halves, floats, count);
        for (size_t i = 0; i < 101; i++)
            assert_int_equal(halves[i], i < count ? 0 : 0xa5a5);
        memset(halves, 0, sizeof halves);
        memset(floats, 0xa5, sizeof floats);
        kernel_bf16_to_f32(floats, halves, count);
        for (size_t i = 0; i < 101; i++)
            assert_int_equal(bits_of(floats[i]), i < count ? 0 : 0xa5a5a5a5);
    }
}

static void test_every_byte_is_divided(void **state)
{
    enum { MOST = 256 + 67 };
    uint8_t bytes[MOST];
    float got[MOST + 1];
    for (int i = 0; i < MOST; i++)
        bytes[i] = (uint8_t)i;
    for (size_t count = 0; count <= MOST; count++) {
        got[count] = -1.0F;
        kernel_bytes_to_unit(got, bytes, count);
        for (size_t i = 0; i < count; i++)
            if (got[i] != (float)bytes[i] / 255.0F)
                fail_msg("%d / 255 of %zu bytes is %a", bytes[i], count, (double)got[i]);
        assert_true(got[count] == -1.0F);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_f16_pattern_widens),
        cmocka_unit_test(test_every_bf16_pattern_widens),
        cmocka_unit_test(test_every_f16_boundary_rounds_to_even),
        cmocka_unit_test(test_every_bf16_boundary_rounds_to_even),
        cmocka_unit_test(test_random_floats_narrow),
        cmocka_unit_test(test_numbers_survive_both_ways),
        cmocka_unit_test(test_narrowed_nan_has_the_documented_bits),
        cmocka_unit_test(test_each_length_writes_only_its_elements),
        cmocka_unit_test(test_every_byte_is_divided),
    };
    level_from_arguments(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
