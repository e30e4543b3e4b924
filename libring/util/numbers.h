/* SPDX-License-Identifier: Apache-2.0
 *
 * numbers: the numbers of a command line or a variable. A number is taken whole or not at all:
 * "1x" is an error, never 1. It begins with a digit: no blank, no plus sign, no hexadecimal.
 * A value that does not fit is no number; nothing overflows.
 */
#ifndef RING_NUMBERS_H
#define RING_NUMBERS_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

/** To the end of the block this thread reads and writes numbers with a decimal point, whatever the
 *  locale of the program is. Functions of the user's must not be called there. */
#define NUMBERS_AS_IN_C \
    __attribute__((cleanup(numbers_as_before))) const locale_t numbers_before = numbers_as_in_c()
locale_t numbers_as_in_c(void);
void numbers_as_before(const locale_t *before);
/** As strtod(), with a decimal point in every locale. */
double number_leading(const char *text, char **end);

#define NUMBER_SIZE_MOST ((size_t)1 << 62)
/** Parses "64", "1.5M", "8G" (binary units) into whole bytes, up to NUMBER_SIZE_MOST. */
bool number_size(const char *text, size_t *bytes);
/** Parses a whole number between @p least and @p most, with a minus sign where it is negative. */
bool number_whole(const char *text, long long least, long long most, long long *value);
/** Parses a finite number of at least 0, "2.5", ".5" or "1e3". */
bool number_real(const char *text, double *value);

/** Longest time-out in seconds, which is more than Python's timedelta holds: a deadline that far
 *  away is still exact to a few hundredths of a second. */
#define NUMBER_SECONDS_MOST 1e14
#define NUMBER_SECONDS_TEXT "seconds from 0.01 to 1e14"
/** Parses a time-out, which is within NUMBER_SECONDS_TEXT. */
bool number_seconds(const char *text, double *seconds);

#endif
