/* SPDX-License-Identifier: Apache-2.0
 * Reads a text file line by line, and adds the number of the line to errors. */
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

ring_status lines_each(FILE *file, const char *path, ring_status (*take)(void *context, char *line),
                       void *context)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t length;
    ring_status status = RING_OK;
    for (int number = 1; status == RING_OK && (length = getline(&text, &room, file)) >= 0;
         number++) {
        const bool is_text = memchr(text, '\0', (size_t)length) == NULL;
        char *line = lines_trim(text);
        if (!is_text)
            status = fail(RING_ERR_CONFIG, "the line has a zero byte; expected a text file");
        else if (*line != '\0' && *line != '#')
            status = take(context, line);
        if (status != RING_OK)
            status = fail(RING_ERR_CONFIG, "%s:%d: %s", path, number, fail_text());
    }
    free(text);
    return status != RING_OK || !ferror(file) ? status
                                              : fail(RING_ERR_CONFIG, "cannot read %s: %m", path);
}
