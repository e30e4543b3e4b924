/* SPDX-License-Identifier: Apache-2.0
 * Finds the shortest text that reads back as the same number by trying 1 digit, 2 digits, and so
 * on. 17 digits are always enough for a float64. */
#include "floats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

enum { DIGITS_MAX = 17, EXPONENT_LOW = -4, EXPONENT_HIGH = 16 };

static int shortest_digits(double value)
{
    char text[FLOAT_TEXT_MAX];
    for (int digits = 1; digits < DIGITS_MAX; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
        if (strtod(text, NULL) == value)
            return digits;
    }
    return DIGITS_MAX;
}

char *float_repr(double value, char *text)
{
    NUMBERS_AS_IN_C;
    if (!isfinite(value)) {
        const char *infinite = value > 0 ? "inf" : "-inf";
        return strcpy(text, isnan(value) ? "nan" : infinite);
    }
    const int digits = shortest_digits(value);
    snprintf(text, FLOAT_TEXT_MAX, "%.*e", digits - 1, value);
    const int exponent = atoi(strchr(text, 'e') + 1);
    if (exponent < EXPONENT_LOW || exponent >= EXPONENT_HIGH)
        return text;
    const int decimals = digits - 1 - exponent;
    snprintf(text, FLOAT_TEXT_MAX, "%.*f", decimals > 0 ? decimals : 1, value);
    return text;
}
