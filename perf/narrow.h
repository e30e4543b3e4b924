/* SPDX-License-Identifier: Apache-2.0
 *
 * narrow: a float rounded once, to nearest even, to the 16-bit types. Written for clarity;
 * the library's own casts are what it is compared with.
 */
#ifndef PERF_NARROW_H
#define PERF_NARROW_H

#include <stdint.h>

uint16_t perf_to_bfloat16(float value);
uint16_t perf_to_float16(float value);

#endif
