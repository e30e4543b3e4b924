/* SPDX-License-Identifier: Apache-2.0
 * Computes the result for each of the 256 values of a byte once, so that images need no division.
 */
#include "pixel_norm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

/* Parses comma-separated numbers up to the character @p end, and moves @p text past it.
 * @return the count of numbers; 0: the text is invalid. */
static size_t parse_list(const char **text, char end, double values[NORM_CHANNELS_MAX])
{
    for (size_t i = 0; i < NORM_CHANNELS_MAX; i++) {
        char *after;
        values[i] = number_leading(*text, &after);
        if (after == *text || !isfinite(values[i]))
            return 0;
        *text = after + 1;
        if (*after == end)
            return i + 1;
        if (*after != ',')
            return 0;
    }
    return 0;
}

/* Prints numbers to text + at. @return the end of the text. */
static size_t print_list(char *text, size_t at, const double *values, size_t count)
{
    NUMBERS_AS_IN_C;
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, NORM_TEXT_MAX - at, "%s%.15g", i == 0 ? "" : ",",
                               values[i]);
    return at;
}

bool pixel_norm_parse(const char *text, pixel_norm *norm)
{
    double means[NORM_CHANNELS_MAX], stds[NORM_CHANNELS_MAX];
    *norm = (pixel_norm){.channels = 0};
    const size_t channels = parse_list(&text, '/', means);
    if (channels == 0 || parse_list(&text, '\0', stds) != channels)
        return false;
    for (size_t c = 0; c < channels; c++) {
        const float mean = (float)means[c], std = (float)stds[c];
        if (!(std > 0.0F))
            return false;
        for (int b = 0; b < BYTE_VALUES; b++)
            norm->values[c][b] = ((float)b / 255.0F - mean) / std;
    }
    norm->channels = channels;
    const size_t at = print_list(norm->text, 0, means, channels);
    norm->text[at] = '/';
    print_list(norm->text, at + 1, stds, channels);
    return true;
}

void pixel_norm_apply(const pixel_norm *norm, const uint8_t *bytes, size_t channels, size_t plane,
                      float *numbers)
{
    for (size_t c = 0; c < channels; c++) {
        const float *values = norm->values[norm->channels == 1 ? 0 : c];
        for (size_t i = 0; i < plane; i++)
            *numbers++ = values[*bytes++];
    }
}
