/* SPDX-License-Identifier: Apache-2.0
 * words: measures how similar two words are, to suggest "did you mean", and makes the plural of
 * nouns that follow a number. */
#ifndef RING_WORDS_H
#define RING_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/** @return how many letters must be inserted, deleted or replaced to turn @p b into @p a, ignoring
 *  case (Levenshtein, 1965); if a word has more than 64 letters, a number above 64. */
size_t words_distance(const char *a, const char *b);

/** @return true if the words are equal when case, '_' and '-' are ignored. */
bool words_alike(const char *a, const char *b);

/** @return the candidate closest to @p word, or NULL if no candidate is close. */
const char *words_nearest(const char *word, const char *const *candidates, size_t count);

/** @return the ending of a noun after the number @p n: "%d rank%s", n, plural(n). */
static inline const char *plural(double n)
{
    return n == 1 ? "" : "s";
}

#endif
