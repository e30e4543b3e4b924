/* SPDX-License-Identifier: Apache-2.0
 * Decodes base64 in either of its two alphabets, as Python's urlsafe_b64decode() does. */
#include "encoded.h"

#include <sodium.h>
#include <string.h>

static bool decode(const char *word, int variant, char *text, size_t *length)
{
    const char *end;
    const size_t size = strlen(word);
    return sodium_base642bin((unsigned char *)text, size, word, size, "\r\n", length, &end,
                             variant) == 0 &&
           *end == '\0';
}

bool encoded_config(const char *word, char *text, size_t *length)
{
    if (!decode(word, sodium_base64_VARIANT_URLSAFE, text, length) &&
        !decode(word, sodium_base64_VARIANT_ORIGINAL, text, length))
        return false;
    size_t start = 0;
    while (start < *length && strchr(" \t\r\n", text[start]) != NULL)
        start++;
    return start < *length && text[start] == '{';
}
