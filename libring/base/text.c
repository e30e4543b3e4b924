/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats text and reports truncation, and makes text from files, peers and users printable.
 */
#include "base.h"

#include "numbers.h"

#include <stdio.h>
#include <string.h>

bool text_format(char *out, size_t size, const char *format, ...)
{
    NUMBERS_AS_IN_C;
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(out, size, format, args);
    va_end(args);
    return length >= 0 && (size_t)length < size;
}

bool text_append(char *out, size_t size, const char *format, ...)
{
    const size_t used = strlen(out);
    NUMBERS_AS_IN_C;
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(out + used, size - used, format, args);
    va_end(args);
    return length >= 0 && (size_t)length < size - used;
}

/* @return the length in bytes of the UTF-8 character at @p at; 0 if the bytes are not a printable
 * character. Overlong forms, surrogates and control characters (up to U+009F) do not count as
 * printable. `forms` describes the first bytes of characters of 2, 3 and 4 bytes, and the least
 * code of each length. */
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
