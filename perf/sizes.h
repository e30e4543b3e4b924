/* SPDX-License-Identifier: Apache-2.0
 * sizes: iterates over the sizes that the options of the command line ask for. */
#ifndef PERF_SIZES_H
#define PERF_SIZES_H

#include <stdbool.h>
#include <stddef.h>

/** Sizes from min to max. The next size is factor times the size if factor is above 1, or else the
 *  size plus step. */
typedef struct perf_sizes {
    size_t min, max, step;
    int factor;
} perf_sizes;

/** @return the size after @p bytes. After the last size, it is above sizes->max. */
size_t perf_sizes_next(const perf_sizes *sizes, size_t bytes);

#endif
