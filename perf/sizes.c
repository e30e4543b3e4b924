/* SPDX-License-Identifier: Apache-2.0
 * Computes the sizes from the smallest to the largest. */
#include "sizes.h"

#include <stdint.h>

size_t perf_sizes_next(const perf_sizes *sizes, size_t bytes)
{
    size_t next;
    const bool wraps = sizes->factor > 1
                           ? __builtin_mul_overflow(bytes, (size_t)sizes->factor, &next)
                           : __builtin_add_overflow(bytes, sizes->step, &next);
    if (wraps)
        return SIZE_MAX;
    return next > bytes ? next : bytes + 1; /* 0 times a factor is 0; continue with 1 byte */
}
