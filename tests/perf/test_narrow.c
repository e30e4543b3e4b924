/* SPDX-License-Identifier: Apache-2.0
 * Rounding to the 16-bit types, for every value that they have. */
#include "narrow.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static float half_value(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, digits = bits & 1023;
    const float size = exponent ? ldexpf((float)(1024 + digits), exponent - 25)
                                : ldexpf((float)digits, -24);
    return bits >> 15 ? -size : size;
}

static float brain_value(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static void every_float16_stays_itself(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        assert_int_equal(perf_to_float16(half_value((uint16_t)bits)), bits);
        assert_int_equal(perf_to_float16(half_value((uint16_t)(bits | 0x8000))), bits | 0x8000);
    }
}

static void every_bfloat16_stays_itself(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= 0x7f80; bits++) {
        assert_int_equal(perf_to_bfloat16(brain_value((uint16_t)bits)), bits);
        assert_int_equal(perf_to_bfloat16(brain_value((uint16_t)(bits | 0x8000))), bits | 0x8000);
    }
}

/* Half-way goes to the even neighbour, a little more or less to the nearer one. */
static void check_between(uint16_t (*narrow)(float), float low, float high, uint16_t bits)
{
    const float middle = 0.5f * low + 0.5f * high;
    assert_int_equal(narrow(middle), bits + (bits & 1));
    assert_int_equal(narrow(nextafterf(middle, low)), bits);
    assert_int_equal(narrow(nextafterf(middle, high)), bits + 1);
}

static void ties_of_float16_go_to_the_even(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7bff; bits++)
        check_between(perf_to_float16, half_value((uint16_t)bits), half_value((uint16_t)(bits + 1)),
                      (uint16_t)bits);
}

static void ties_of_bfloat16_go_to_the_even(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7f7f; bits++)
        check_between(perf_to_bfloat16, brain_value((uint16_t)bits),
                      brain_value((uint16_t)(bits + 1)), (uint16_t)bits);
}

static void what_is_too_large_becomes_infinite(void **state)
{
    (void)state;
    assert_int_equal(perf_to_float16(65519.0f), 0x7bff);
    assert_int_equal(perf_to_float16(65520.0f), 0x7c00);
    assert_int_equal(perf_to_float16(-1e30f), 0xfc00);
    assert_int_equal(perf_to_bfloat16(3.4e38f), 0x7f80);
    assert_int_equal(perf_to_float16(nanf("")) & 0x7e00, 0x7e00);
    assert_int_equal(perf_to_bfloat16(nanf("")) & 0x7fc0, 0x7fc0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_float16_stays_itself),
        cmocka_unit_test(every_bfloat16_stays_itself),
        cmocka_unit_test(ties_of_float16_go_to_the_even),
        cmocka_unit_test(ties_of_bfloat16_go_to_the_even),
        cmocka_unit_test(what_is_too_large_becomes_infinite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
