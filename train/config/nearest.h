/* SPDX-License-Identifier: Apache-2.0
 * nearest: how far two words are apart, for "did you mean". */
#ifndef TRAIN_NEAREST_H
#define TRAIN_NEAREST_H

#include <stddef.h>

/** @return the number of letters to insert, delete or replace (case apart) that make @p a
 *  of @p b (Levenshtein, 1965); words of more than 64 letters count as far apart. */
size_t nearest_distance(const char *a, const char *b);

#endif
