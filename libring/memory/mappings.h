/* SPDX-License-Identifier: Apache-2.0
 * mappings: finds the kernel's mappings that a range of memory is in, for watched.c, which must
 * watch whole mappings. */
#ifndef RING_MAPPINGS_H
#define RING_MAPPINGS_H

#include "base.h"

#include <stdint.h>

typedef struct mappings_range {
    uintptr_t from, to;
} mappings_range;

/** @param[out] out  the whole range of the mappings that contain [base, base+bytes).
 *  @return false if they have gaps, or are not all writable, private, anonymous memory.
 *  Cost: reads /proc/self/maps, about a microsecond for each mapping. */
bool mappings_around(const void *base, size_t bytes, mappings_range *out);

#endif
