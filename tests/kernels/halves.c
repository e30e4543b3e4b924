/* SPDX-License-Identifier: Apache-2.0
 * A narrow float is a number of steps of its exponent's size. */
#include "halves.h"

#include <math.h>

const half_format half_float16 = {.sign = 0x8000, .mantissa = 10, .min_exponent = -14};
const half_format half_bfloat16 = {.sign = 0x8000, .mantissa = 7, .min_exponent = -126};
const half_format half_e4m3 = {
    .sign = 0x80, .mantissa = 3, .min_exponent = -6, .largest = 0x7e, .only_nan = 0x7f};
const half_format half_e5m2 = {.sign = 0x80, .mantissa = 2, .min_exponent = -14, .largest = 0x7b};

double half_value(uint16_t half, half_format format)
{
    const int unit = 1 << format.mantissa, magnitude = half & (format.sign - 1);
    const int fraction = magnitude % unit, exponent = magnitude / unit;
    const int special = format.sign / unit - 1;
    const double sign = half & format.sign ? -1 : 1;
    if (format.only_nan != 0 && magnitude == format.only_nan)
        return nan("");
    if (format.only_nan == 0 && exponent == special)
        return fraction ? nan("") : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, format.min_exponent - format.mantissa);
    return sign * ldexp(unit + fraction, format.min_exponent + exponent - 1 - format.mantissa);
}

uint16_t half_bits(double x, half_format format)
{
    const unsigned sign = signbit(x) ? (unsigned)format.sign : 0;
    const unsigned infinity = (unsigned)format.sign - (1u << format.mantissa);
    const unsigned most = format.largest != 0 ? (unsigned)format.largest : infinity;
    const double a = fabs(x);
    if (isnan(x))
        return (uint16_t)(2 * format.sign - 1);
    if (a == 0)
        return (uint16_t)sign;
    if (isinf(a))
        return (uint16_t)(sign | most);
    const int exponent = ilogb(a) > format.min_exponent ? ilogb(a) : format.min_exponent;
    const double steps = nearbyint(ldexp(a, format.mantissa - exponent));
    const double bits = ldexp(exponent - format.min_exponent, format.mantissa) + steps;
    return (uint16_t)(sign | (bits < most ? (unsigned)bits : most));
}
