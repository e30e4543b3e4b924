/* SPDX-License-Identifier: Apache-2.0
 *
 * narrow: converts a float to the types of 16 and 8 bits, rounding it once, to nearest even. It is
 * written for clarity, because the library's own conversions are checked against it.
 */
#ifndef PERF_NARROW_H
#define PERF_NARROW_H

#include <stdint.h>

uint16_t perf_to_bfloat16(float value);
uint16_t perf_to_float16(float value);

/** Values that are too large become the largest finite number: 448 for e4m3, 57344 for e5m2. */
uint8_t perf_to_float8_e4m3(float value);
uint8_t perf_to_float8_e5m2(float value);

#endif
