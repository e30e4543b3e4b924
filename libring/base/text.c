/* SPDX-License-Identifier: Apache-2.0
 * Near words, and formatting. */
#include "base.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 64, TOO_FAR = WORD_MAX + 1 };

static bool is_same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

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
            const size_t change = diagonal + !is_same_letter(a[i - 1], b[j - 1]);
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

/* @return how many bytes a printable character at @p at has, 0: there is none. Overlong forms,
 * surrogates and the control characters up to U+009F are none. */
static size_t character_bytes(const unsigned char *at)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0xe0, 0xc0, 0xa0}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    if (at[0] < 0x80)
        return at[0] >= 0x20 && at[0] != 0x7f;
    for (size_t form = 0; form < sizeof forms / sizeof forms[0]; form++) {
        uint32_t code = at[0] & (unsigned char)~forms[form].mask;
        if ((at[0] & forms[form].mask) != forms[form].lead)
            continue;
        for (size_t i = 1; i < form + 2; i++) {
            if ((at[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (at[i] & 0x3f);
        }
        const bool real = code >= forms[form].least && code <= 0x10ffff && code >> 11 != 0x1b;
        return real ? form + 2 : 0;
    }
    return 0;
}

void text_make_printable(char *text, size_t size)
{
    unsigned char *at = (unsigned char *)text;
    text[size - 1] = '\0';
    while (*at != '\0') {
        const size_t bytes = character_bytes(at);
        if (bytes == 0)
            *at = '?';
        at += max_size(bytes, 1);
    }
}
