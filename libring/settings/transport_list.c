/* SPDX-License-Identifier: Apache-2.0
 * Parses RING_TRANSPORT, a comma-separated list of names, or of names to exclude. */
#include "transport_list.h"

#include <string.h>

static ring_status refuse(const settings *s, const char *why, const char *const *names,
                          size_t count)
{
    char all[256] = "";
    for (size_t i = 0; i < count; i++)
        text_append(all, sizeof all, "%s%s", i > 0 ? ", " : "", names[i]);
    return fail(RING_ERR_CONFIG, "RING_TRANSPORT=%s: %s; known transports: %s", s->transport, why,
                all);
}

/* Finds the name that a word of @p length characters is; its bit is 1 << index. */
static bool find_name(const char *word, size_t length, const char *const *names, size_t count,
                      uint32_t *bit)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) == length && strncmp(names[i], word, length) == 0) {
            *bit = 1u << i;
            return true;
        }
    }
    return false;
}

static ring_status parse_list(const settings *s, const char *list, const char *const *names,
                              size_t count, uint32_t *mask)
{
    *mask = 0;
    for (const char *word = list; *word != '\0';) {
        const size_t length = strcspn(word, ", ");
        uint32_t bit = 0;
        if (length > 0 && !find_name(word, length, names, count, &bit)) {
            char why[160];
            text_format(why, sizeof why, "\"%.*s\" is unknown", (int)min_size(length, 100), word);
            return refuse(s, why, names, count);
        }
        *mask |= bit;
        word += length + (word[length] != '\0');
    }
    return RING_OK;
}

ring_status settings_transports(const settings *s, const char *const *names, size_t count,
                                uint32_t asked, uint32_t *mask)
{
    const uint32_t all = (count >= 32 ? UINT32_MAX : (1u << count) - 1) & ~asked;
    const bool exclude = s->transport[0] == '^';
    *mask = all;
    if (s->transport[0] == '\0')
        return RING_OK;
    RING_TRY(parse_list(s, s->transport + exclude, names, count, mask));
    if (exclude)
        *mask = all & ~*mask;
    return *mask != 0 ? RING_OK : refuse(s, "no transport is left", names, count);
}
