/* SPDX-License-Identifier: Apache-2.0
 * Rounding to the 16-bit types, for every value that they have. */
#include "narrow.h"

#include <math.h>
#include <string.h>

#include "unit_test.h"

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
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        assert_int_equal(perf_to_float16(half_value((uint16_t)bits)), bits);
        assert_int_equal(perf_to_float16(half_value((uint16_t)(bits | 0x8000))), bits | 0x8000);
    }
}

static void every_bfloat16_stays_itself(void **state)
{
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
    for (uint32_t bits = 0; bits < 0x7bff; bits++)
        check_between(perf_to_float16, half_value((uint16_t)bits), half_value((uint16_t)(bits + 1)),
                      (uint16_t)bits);
}

static void ties_of_bfloat16_go_to_the_even(void **state)
{
    for (uint32_t bits = 0; bits < 0x7f7f; bits++)
        check_between(perf_to_bfloat16, brain_value((uint16_t)bits),
                      brain_value((uint16_t)(bits + 1)), (uint16_t)bits);
}

/* OCP's tables, number by number. */
static float quarter_value(uint8_t bits, int digits, int least)
{
    const int unit = 1 << (digits - 1), exponent = (bits & 0x7f) / unit, rest = bits % unit;
    const float size = exponent > 0
                           ? ldexpf((float)(unit + rest), exponent - 1 + least - digits + 1)
                           : ldexpf((float)rest, least - digits + 1);
    return bits >> 7 ? -size : size;
}

static void check_quarters(uint8_t (*narrow)(float), int digits, int least, uint8_t most)
{
    for (uint8_t bits = 0; bits < most; bits++) {
        const float low = quarter_value(bits, digits, least);
        const float high = quarter_value((uint8_t)(bits + 1), digits, least);
        const float middle = 0.5f * low + 0.5f * high;
        assert_int_equal(narrow(low), bits);
        assert_int_equal(narrow(-low), bits | 0x80);
        assert_int_equal(narrow(middle), bits + (bits & 1));
        assert_int_equal(narrow(nextafterf(middle, low)), bits);
        assert_int_equal(narrow(nextafterf(middle, high)), bits + 1);
    }
    assert_int_equal(narrow(quarter_value(most, digits, least)), most);
    assert_int_equal(narrow(INFINITY), most);
    assert_int_equal(narrow(-1e30f), most | 0x80);
    assert_int_equal(narrow(nanf("")) & 0x7f, 0x7f);
}

static void floats_of_8_bits_are_nearest_and_saturate(void **state)
{
    assert_true(quarter_value(0x7e, 4, -6) == 448 && quarter_value(0x7b, 3, -14) == 57344);
    check_quarters(perf_to_float8_e4m3, 4, -6, 0x7e);
    check_quarters(perf_to_float8_e5m2, 3, -14, 0x7b);
}

static void what_is_too_large_becomes_infinite(void **state)
{
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
        cmocka_unit_test(floats_of_8_bits_are_nearest_and_saturate),
        cmocka_unit_test(what_is_too_large_becomes_infinite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
