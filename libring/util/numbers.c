/* SPDX-License-Identifier: Apache-2.0
 * Parses numbers by strtoll() and strtod(). These accept more forms than are allowed here, so the
 * text is checked, too. */
#include "numbers.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* @return the power of two that a suffix such as "K", "KB" or "KiB" means; -1 if it is unknown. */
static int unit_shift(const char *suffix)
{
    static const char letters[] = "KMGT";
    if (*suffix == '\0')
        return 0;
    const char *letter = strchr(letters, toupper((unsigned char)*suffix));
    const char *rest = suffix + 1;
    if (!letter || (*rest && strcasecmp(rest, "B") != 0 && strcasecmp(rest, "iB") != 0))
        return -1;
    return 10 * (int)(letter - letters + 1);
}

/* The C locale is static in the C library: it needs no memory and is not freed. */
locale_t numbers_as_in_c(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

void numbers_as_before(const locale_t *before)
{
    uselocale(*before);
}

double number_leading(const char *text, char **end)
{
    NUMBERS_AS_IN_C;
    return strtod(text, end);
}

bool number_size(const char *text, size_t *bytes)
{
    char *end;
    const double number = number_leading(text, &end);
    const int shift = unit_shift(end);
    const bool decimal = text + strspn(text, "0123456789.") ==
                         end; /* strtod() also accepts hexadecimal numbers */
    if (!is_digit(*text) || !decimal || shift < 0)
        return false;
    const double value = ldexp(number, shift);
    if (value > (double)NUMBER_SIZE_MOST || value != floor(value))
        return false;
    *bytes = (size_t)value;
    return true;
}

bool number_whole(const char *text, long long least, long long most, long long *value)
{
    char *end;
    if (!is_digit(*text == '-' ? text[1] : *text))
        return false;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return *end == '\0' && errno == 0 && *value >= least && *value <= most;
}

bool number_real(const char *text, double *value)
{
    char *end;
    *value = number_leading(text, &end);
    return is_digit(*text == '.' ? text[1] : *text) && !strpbrk(text, "xX") && *end == '\0' &&
           isfinite(*value);
}

bool number_seconds(const char *text, double *seconds)
{
    return number_real(text, seconds) && *seconds >= 0.01 && *seconds <= NUMBER_SECONDS_MOST;
}

bool number_limit(const char *text, double *seconds)
{
    if (strcasecmp(text, "none") != 0)
        return number_seconds(text, seconds);
    *seconds = NUMBER_NO_LIMIT;
    return true;
}

const char *number_limit_text(double seconds, char out[NUMBER_LIMIT_MAX])
{
    NUMBERS_AS_IN_C;
    if (seconds >= NUMBER_NO_LIMIT)
        return strcpy(out, "none");
    (void)snprintf(out, NUMBER_LIMIT_MAX, "%g", seconds);
    return out;
}
