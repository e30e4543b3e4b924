/* SPDX-License-Identifier: Apache-2.0
 *
 * The results that kernels must give, computed another way: one element at a time, integers in
 * 128 bits, floats in long double or double, 16-bit floats by ldexp and nearbyint. */
#ifndef TEST_ORACLE_H
#define TEST_ORACLE_H

#include "halves.h"
#include "kernels.h"

size_t oracle_size(ring_dtype dtype, bool accumulator);
bool oracle_is_half(ring_dtype dtype);
bool oracle_is_float(ring_dtype dtype);

/** Writes element @p i of the fold of @p ins to @p out; a NaN as all ones. */
void oracle_fold(void *out, bool accumulator, const kernel_operand *ins, int in_count, size_t i,
                 ring_dtype dtype, ring_op op, int divisor);

/** Writes the product of element @p i and a factor to @p out; a NaN as all ones. */
void oracle_scale(void *out, const void *data, size_t i, ring_dtype dtype, double by);

/** A stream of pseudo-random bits (splitmix64). */
uint64_t oracle_random(uint64_t *state);
/** Fills @p data with elements of all kinds; floats include NaNs, infinities, zeros of both
 *  signs, subnormals and numbers near the ends of the range. */
void oracle_fill(void *data, size_t count, ring_dtype dtype, bool accumulator, uint64_t *state);

#endif
