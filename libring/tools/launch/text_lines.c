/* SPDX-License-Identifier: Apache-2.0
 * Reads a text file line by line and names the line in errors. */
#include "text_lines.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

char *lines_trim(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

static ring_status take_line(char *text, size_t length,
                             ring_status (*take)(void *context, char *line), void *context)
{
    if (memchr(text, '\0', length) != NULL)
        return fail(RING_ERR_CONFIG, "a zero byte, so this is no text");
    char *line = lines_trim(text);
    return *line == '\0' || *line == '#' ? RING_OK : take(context, line);
}

ring_status lines_each(FILE *file, const char *path, ring_status (*take)(void *context, char *line),
                       void *context)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t length;
    ring_status status = RING_OK;
    for (int number = 1; status == RING_OK && (length = getline(&text, &room, file)) >= 0;
         number++) {
        if (take_line(text, (size_t)length, take, context) != RING_OK)
            status = fail(RING_ERR_CONFIG, "%s:%d: %s", path, number, fail_text());
    }
    free(text);
    return status != RING_OK || !ferror(file) ? status : fail(RING_ERR_CONFIG, "%s: %m", path);
}
