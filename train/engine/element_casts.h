/* SPDX-License-Identifier: Apache-2.0
 *
 * element_casts: converts arrays between the types in which states are stored and sent. Everything
 * is computed in float32 and rounded once, to nearest even.
 */
#ifndef TRAIN_ELEMENT_CASTS_H
#define TRAIN_ELEMENT_CASTS_H

#include <ring/ring.h>
#include <stddef.h>

/** @return the address of element @p element of an array of @p type. */
void *element_of(const void *array, ring_dtype type, size_t element);

/** to[i] = from[i] for i < @p count, between float32 and @p type. */
void elements_to_float(float *to, const void *from, ring_dtype type, size_t count);
void elements_from_float(void *to, ring_dtype type, const float *from, size_t count);

/** to[i] = from[i] for i < @p count, between any two types. */
void cast_elements(void *to, ring_dtype to_type, const void *from, ring_dtype from_type,
                   size_t count);
/** to[i] += from[i] for i < @p count, with the sum in float32. */
void add_elements(void *to, ring_dtype to_type, const void *from, ring_dtype from_type,
                  size_t count);
/** Rounds each value to the nearest one that @p type can represent. */
void round_elements(float *values, ring_dtype type, size_t count);

#endif
