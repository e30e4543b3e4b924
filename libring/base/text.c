/* SPDX-License-Identifier: Apache-2.0
 * Near words, and formatting. */
#include "base.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 64, TOO_FAR = WORD_MAX + 1 };

/* Levenshtein distance with one row; longer words are near to nothing. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1];
    const size_t la = strlen(a), lb = strlen(b);
    if (la > WORD_MAX || lb > WORD_MAX)
        return TOO_FAR;
    for (size_t j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            const size_t change = diagonal + (tolower((unsigned char)a[i - 1]) !=
                                              tolower((unsigned char)b[j - 1]));
            diagonal = row[j];
            row[j] = min_size(change, min_size(row[j], row[j - 1]) + 1);
        }
    }
    return row[lb];
}

const char *text_nearest(const char *word, const char *const *candidates, size_t count)
{
    const char *best = NULL;
    size_t best_distance = min_size(strlen(word) / 2 + 1, TOO_FAR);
    for (size_t i = 0; i < count; i++) {
        const size_t distance = edit_distance(word, candidates[i]);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidates[i];
        }
    }
    return best;
}

bool text_format(char *out, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(out, size, format, args);
    va_end(args);
    return length >= 0 && (size_t)length < size;
}
