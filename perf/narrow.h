/* SPDX-License-Identifier: Apache-2.0
 *
 * narrow: converts a float, rounded once, to nearest even, to the types of 16 and 8 bits. It is
 * written for clarity, since it checks the library's own casts.
 */
#ifndef PERF_NARROW_H
#define PERF_NARROW_H

#include <stdint.h>

uint16_t perf_to_bfloat16(float value);
uint16_t perf_to_float16(float value);

/** Too large values become the largest finite number, 448 and 57344. */
uint8_t perf_to_float8_e4m3(float value);
uint8_t perf_to_float8_e5m2(float value);

#endif
