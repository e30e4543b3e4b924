/* SPDX-License-Identifier: Apache-2.0
 * Tries to read one byte more than is allowed. This detects files that are too long, including
 * devices without an end. */
#include "text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"

static ring_status read_all(FILE *file, const char *path, size_t most, const char *what, char *text,
                            size_t *length)
{
    *length = fread(text, 1, most + 1, file);
    if (ferror(file))
        return train_fail(RING_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    if (*length > most)
        return train_fail(RING_ERR_CONFIG,
                          "%s: the file has more than %zu bytes, so it is probably not %s", path,
                          most, what);
    return RING_OK;
}

ring_status text_file_read(const char *path, size_t most, const char *what, char **text,
                           size_t *length)
{
    *text = malloc(most + 1);
    if (*text == NULL)
        return train_fail(RING_ERR_MEMORY, "%s: no memory to read it", path);
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return train_fail(RING_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    const ring_status status = read_all(file, path, most, what, *text, length);
    fclose(file);
    return status;
}
