/* SPDX-License-Identifier: Apache-2.0
 * Computes the edit distance of two words, keeping one row of the table at a time. */
#include "words.h"

#include <ctype.h>
#include <string.h>

enum { WORD_MAX = 64, TOO_FAR = WORD_MAX + 1 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t differ(char a, char b)
{
    return tolower((unsigned char)a) != tolower((unsigned char)b);
}

size_t words_distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1];
    const size_t width = strlen(b);
    if (strlen(a) > WORD_MAX || width > WORD_MAX)
        return TOO_FAR;
    /* After step i, row[j] is the distance between the first i letters of a and the first j letters
     * of b. `diagonal` is the value of row[j - 1] after step i - 1. */
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            const size_t replaced = diagonal + differ(a[i - 1], b[j - 1]);
            diagonal = row[j];
            row[j] = least(replaced, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[width];
}

bool words_alike(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, "_-");
        b += strspn(b, "_-");
        if (differ(*a, *b))
            return false;
        if (*a == '\0')
            return true;
    }
}

const char *words_nearest(const char *word, const char *const *candidates, size_t count)
{
    const char *best = NULL;
    size_t best_distance = least(strlen(word) / 2 + 1, TOO_FAR);
    for (size_t i = 0; i < count; i++) {
        const size_t distance = words_distance(word, candidates[i]);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidates[i];
        }
    }
    return best;
}
