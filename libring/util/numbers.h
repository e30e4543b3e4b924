/* SPDX-License-Identifier: Apache-2.0
 *
 * numbers: parses numbers of command lines and variables. The whole text must be a number: "1x" is
 * an error, never 1. A number begins with a digit, without blanks, plus signs or hexadecimal
 * prefixes. A value out of range is an error; nothing overflows.
 */
#ifndef RING_NUMBERS_H
#define RING_NUMBERS_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

/** Until the end of the enclosing block, this thread reads and writes numbers with a decimal point,
 *  whatever the locale of the program is. The block must not call callbacks of the user. */
#define NUMBERS_AS_IN_C \
    __attribute__((cleanup(numbers_as_before))) const locale_t numbers_before = numbers_as_in_c()
locale_t numbers_as_in_c(void);
void numbers_as_before(const locale_t *before);
/** Like strtod(), but with a decimal point in every locale. */
double number_leading(const char *text, char **end);

#define NUMBER_SIZE_MOST ((size_t)1 << 62)
/** Parses "64", "1.5M", "8G" (binary units) into whole bytes, up to NUMBER_SIZE_MOST. */
bool number_size(const char *text, size_t *bytes);
/** Parses a whole number from @p least to @p most; a negative number begins with '-'. */
bool number_whole(const char *text, long long least, long long most, long long *value);
/** Parses a finite number of at least 0, "2.5", ".5" or "1e3". */
bool number_real(const char *text, double *value);

/** Longest time-out in seconds. It is longer than Python's timedelta can express, and a deadline
 *  that far in the future is still exact to a few hundredths of a second. */
#define NUMBER_SECONDS_MOST 1e14
#define NUMBER_SECONDS_TEXT "seconds from 0.01 to 1e14"
/** Parses a time-out within the range of NUMBER_SECONDS_TEXT. */
bool number_seconds(const char *text, double *seconds);

/** A time limit that never passes, in calculations with times. Its name in settings is "none". */
#define NUMBER_NO_LIMIT NUMBER_SECONDS_MOST
#define NUMBER_LIMIT_TEXT NUMBER_SECONDS_TEXT ", or none"
/** As number_seconds(); "none" in any case means NUMBER_NO_LIMIT. */
bool number_limit(const char *text, double *seconds);
enum { NUMBER_LIMIT_MAX = 16 };
/** Writes such a limit, as "none" or "2.5". @return @p out. */
const char *number_limit_text(double seconds, char out[NUMBER_LIMIT_MAX]);

#endif
