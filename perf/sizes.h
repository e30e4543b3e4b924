/* SPDX-License-Identifier: Apache-2.0
 * sizes: steps through the sizes given on the command line. */
#ifndef PERF_SIZES_H
#define PERF_SIZES_H

#include <stdbool.h>
#include <stddef.h>

/** Sizes from min to max: times factor where it is above 1, else plus step. */
typedef struct perf_sizes {
    size_t min, max, step;
    int factor;
} perf_sizes;

/** @return the size after @p bytes; above sizes->max at the end. */
size_t perf_sizes_next(const perf_sizes *sizes, size_t bytes);

#endif
