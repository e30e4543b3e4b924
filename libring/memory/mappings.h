/* SPDX-License-Identifier: Apache-2.0
 * mappings: the kernel's mappings around an address. */
#ifndef RING_MAPPINGS_H
#define RING_MAPPINGS_H

#include "base.h"

#include <stdint.h>

typedef struct mappings_range {
    uintptr_t from, to;
} mappings_range;

/** @param[out] out  the whole range of the mappings that [base, base+bytes) lies in.
 *  @return false: they have gaps, are not writable, or are not all private anonymous memory.
 *  Reads /proc/self/maps, about a microsecond a mapping. */
bool mappings_around(const void *base, size_t bytes, mappings_range *out);

#endif
