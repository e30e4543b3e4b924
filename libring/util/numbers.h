/* SPDX-License-Identifier: Apache-2.0
 *
 * numbers: the numbers of a command line or a variable. A number is taken whole or not at all:
 * "1x" is an error, never 1. It begins with a digit: no blank, no plus sign, no hexadecimal.
 * A value that does not fit is no number; nothing overflows.
 */
#ifndef RING_NUMBERS_H
#define RING_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>

/** Parses "64", "1.5M", "8G" (binary units) into whole bytes. */
bool number_size(const char *text, size_t *bytes);
/** Parses a whole number between @p least and @p most, with a minus sign where it is negative. */
bool number_whole(const char *text, long long least, long long most, long long *value);
/** Parses a finite number of at least 0, "2.5" or "1e3". */
bool number_real(const char *text, double *value);

#endif
