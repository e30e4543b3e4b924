/* SPDX-License-Identifier: Apache-2.0
 * mappings: finds the kernel's mappings that contain a range of memory. watched.c needs them,
 * because it must watch whole mappings. */
#ifndef RING_MAPPINGS_H
#define RING_MAPPINGS_H

#include "base.h"

#include <stdint.h>

/** The addresses from `from` up to, but not including, `to`. */
typedef struct mappings_range {
    uintptr_t from, to;
} mappings_range;

/** Finds the mappings that contain [base, base+bytes).
 *  @param[out] out  the range of all these mappings together.
 *  @return false if there are gaps, or if a mapping is not writable, private, anonymous memory.
 *  Cost: reads /proc/self/maps, about a microsecond for each mapping. */
bool mappings_around(const void *base, size_t bytes, mappings_range *out);

#endif
