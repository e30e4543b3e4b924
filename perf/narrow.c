/* SPDX-License-Identifier: Apache-2.0
 *
 * narrow: converts floats by the definition of the narrow type. A narrow float is a multiple of the
 * spacing of its neighbours. So a value is divided by this spacing and rounded to a whole number
 * (to nearest even, which is the default of C); the number gives the bits.
 */
#include "narrow.h"

#include <math.h>
#include <string.h>

uint16_t perf_to_bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return (uint16_t)(bits >> 16 | 0x40);
    const uint32_t odd = bits >> 16 & 1;
    return (uint16_t)((bits + 0x7fff + odd) >> 16);
}

uint16_t perf_to_float16(float value)
{
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    const float size = fabsf(value);
    if (isnan(value))
        return sign | 0x7e00;
    if (size >= 65520.0f) /* half-way between the largest number and the next */
        return sign | 0x7c00;
    if (size < 0x1p-14f) /* subnormal: spacing 2^-24 */
        return sign | (uint16_t)nearbyintf(size * 0x1p24f);
    int exponent;
    frexpf(size, &exponent); /* size = m * 2^exponent, 0.5 <= m < 1; 11 bits of m are kept */
    const uint16_t digits = (uint16_t)nearbyintf(ldexpf(size, 11 - exponent));
    return sign | (uint16_t)(((exponent + 13) << 10) + digits);
}

/* @param digits  significant binary digits, counting the one before the point
 * @param least   exponent of the smallest normal number
 * @param most    the largest finite number */
static uint8_t to_float8(float value, int digits, int least, float most)
{
    const uint8_t sign = signbit(value) ? 0x80 : 0;
    const float size = fminf(fabsf(value), most);
    int exponent;
    if (isnan(value))
        return sign | 0x7f;
    if (size < ldexpf(1, least)) /* subnormal: spacing of the smallest normal numbers */
        return sign | (uint8_t)nearbyintf(ldexpf(size, digits - 1 - least));
    frexpf(size, &exponent);
    const int steps = (int)nearbyintf(ldexpf(size, digits - exponent));
    return sign | (uint8_t)(((exponent - 1 - least) << (digits - 1)) + steps);
}

uint8_t perf_to_float8_e4m3(float value)
{
    return to_float8(value, 4, -6, 448);
}

uint8_t perf_to_float8_e5m2(float value)
{
    return to_float8(value, 3, -14, 57344);
}
