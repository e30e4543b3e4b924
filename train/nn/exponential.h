/* SPDX-License-Identifier: Apache-2.0
 *
 * exponential: computes e^x without branches and calls, so that the compiler can vectorize loops
 * over it.
 */
#ifndef TRAIN_EXPONENTIAL_H
#define TRAIN_EXPONENTIAL_H

#include <stdint.h>
#include <string.h>

/** @return e^x with a relative error of at most 2e-7. x is clamped to -87 … 88; NaN stays NaN.
 *
 *  x = n ln 2 + r with a whole number n and |r| <= ln 2 / 2, so e^x = 2^n · e^r. 2^n is made by
 *  writing the bits of the exponent, and e^r is computed as a series. */
static inline float exponential(float x)
{
    const float whole = 0x1.8p23F; /* adding this rounds a small number to a whole one */
    x = x < -87.0F ? -87.0F : x;
    x = x > 88.0F ? 88.0F : x;
    const float shifted = x * 0x1.715476p0F + whole, n = shifted - whole;
    const float r = (x - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F; /* ln 2 as a sum of two */
    float series = 1.0F / 5040.0F;
    series = series * r + 1.0F / 720.0F;
    series = series * r + 1.0F / 120.0F;
    series = series * r + 1.0F / 24.0F;
    series = series * r + 1.0F / 6.0F;
    series = series * r + 0.5F;
    series = series * r + 1.0F;
    series = series * r + 1.0F;
    uint32_t exponent;
    float power;
    memcpy(&exponent, &shifted, sizeof exponent);
    exponent = (exponent + 127) << 23; /* the bits of 1.5 * 2^23 above n are shifted out */
    memcpy(&power, &exponent, sizeof power);
    return series * power;
}

#endif
