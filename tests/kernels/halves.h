/* SPDX-License-Identifier: Apache-2.0
 * halves: 16-bit floats for oracles, by ldexp and nearbyint rather than by bits. */
#ifndef TEST_HALVES_H
#define TEST_HALVES_H

#include <stdint.h>

/* A 16-bit float format. */
typedef struct half_format {
    int mantissa;     /* stored bits */
    int min_exponent; /* of normal numbers */
} half_format;

extern const half_format half_float16, half_bfloat16;

double half_value(uint16_t half, half_format format);
/** Rounds to nearest even; a NaN becomes all ones. */
uint16_t half_bits(double x, half_format format);

#endif
