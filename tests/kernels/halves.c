/* SPDX-License-Identifier: Apache-2.0
 * A 16-bit float is a number of steps of its exponent's size. */
#include "halves.h"

#include <math.h>

const half_format half_float16 = {.mantissa = 10, .min_exponent = -14};
const half_format half_bfloat16 = {.mantissa = 7, .min_exponent = -126};

double half_value(uint16_t half, half_format format)
{
    const int unit = 1 << format.mantissa;
    const int fraction = half % unit, exponent = (half & 0x7fff) / unit;
    const int special = 0x8000 / unit - 1;
    const double sign = half & 0x8000 ? -1 : 1;
    if (exponent == special)
        return fraction ? nan("") : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, format.min_exponent - format.mantissa);
    return sign * ldexp(unit + fraction, format.min_exponent + exponent - 1 - format.mantissa);
}

uint16_t half_bits(double x, half_format format)
{
    if (isnan(x))
        return 0xffff;
    const unsigned sign = signbit(x) ? 0x8000 : 0;
    const unsigned infinity = 0x8000u - (1u << format.mantissa);
    const double a = fabs(x);
    if (a == 0)
        return (uint16_t)sign;
    if (isinf(a))
        return (uint16_t)(sign | infinity);
    const int exponent = ilogb(a) > format.min_exponent ? ilogb(a) : format.min_exponent;
    const double steps = nearbyint(ldexp(a, format.mantissa - exponent));
    const double bits = ldexp(exponent - format.min_exponent, format.mantissa) + steps;
    return (uint16_t)(sign | (bits < infinity ? (unsigned)bits : infinity));
}
