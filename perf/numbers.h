/* SPDX-License-Identifier: Apache-2.0
 *
 * numbers: the numbers of a command line, and the run of sizes that they ask for. A number is
 * taken whole or not at all: "1x" is an error, never 1. It begins with a digit: no blank, no
 * plus sign, no hexadecimal.
 */
#ifndef PERF_NUMBERS_H
#define PERF_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>

/** Parses "64", "1.5M", "8G" (binary units) into whole bytes. */
bool perf_size_parse(const char *text, size_t *bytes);
/** Parses a whole number between @p least and @p most, with a minus sign where it is negative. */
bool perf_int_parse(const char *text, int least, int most, int *value);
/** Parses a finite number of at least 0, "2.5" or "1e3". */
bool perf_real_parse(const char *text, double *value);

/** Sizes from min to max: times factor where it is above 1, else plus step. */
typedef struct perf_sizes {
    size_t min, max, step;
    int factor;
} perf_sizes;

/** @return the size after @p bytes; above sizes->max at the end. */
size_t perf_sizes_next(const perf_sizes *sizes, size_t bytes);

#endif
