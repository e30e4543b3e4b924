/* SPDX-License-Identifier: Apache-2.0
 * words: how far two words are apart, for "did you mean"; and nouns that agree with a number. */
#ifndef RING_WORDS_H
#define RING_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/** @return the number of letters to insert, delete or replace (case apart) that make @p a
 *  of @p b (Levenshtein, 1965); words of more than 64 letters count as far apart. */
size_t words_distance(const char *a, const char *b);

/** @return true if the words are equal but for case, '_' and '-'. */
bool words_alike(const char *a, const char *b);

/** @return the candidate closest to @p word, or NULL if none is close. */
const char *words_nearest(const char *word, const char *const *candidates, size_t count);

/** @return what a noun ends with after the number @p n: "%d rank%s", n, plural(n). */
static inline const char *plural(double n)
{
    return n == 1 ? "" : "s";
}

#endif
