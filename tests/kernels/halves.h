/* SPDX-License-Identifier: Apache-2.0
 * halves: floats of 16 and 8 bits for oracles, by ldexp and nearbyint rather than by bits. */
#ifndef TEST_HALVES_H
#define TEST_HALVES_H

#include <stdint.h>

/* A narrow float format. */
typedef struct half_format {
    int sign;         /* its bit, the highest one */
    int mantissa;     /* stored bits */
    int min_exponent; /* of normal numbers */
    int largest;      /* what is too large becomes this; 0: infinity */
    int only_nan;     /* 0: NaNs and infinities have the highest exponent */
} half_format;

extern const half_format half_float16, half_bfloat16, half_e4m3, half_e5m2;

double half_value(uint16_t half, half_format format);
/** Rounds to nearest even; a NaN becomes all ones. */
uint16_t half_bits(double x, half_format format);

#endif
