/* SPDX-License-Identifier: Apache-2.0
 *
 * lenient: the reader of JSON as DeepSpeed's hjson accepts it and people write it: comments of
 * three kinds, trailing commas and none at the ends of lines, keys and texts without quotes or with
 * single ones, no outermost braces. Each value knows its place in the source, so that every later
 * message can say line and column.
 */
#ifndef TRAIN_LENIENT_H
#define TRAIN_LENIENT_H

#include <cjson/cJSON.h>
#include <ring/ring.h>

#include "faults.h"

typedef struct lenient_text {
    const char *name;   /* of the file, for messages; borrowed */
    const char *source; /* borrowed */
    size_t source_length;
    cJSON *tree;      /* its texts have no control characters, which messages must not repeat */
    size_t key_count; /* of all objects */
} lenient_text;

/** @param source  [length], any bytes
 *  @param list    gets all that is wrong, what is returned too. With RING_OK the tree may be looked
 *                 at nevertheless; null stands in it where there is no value.
 *  Free with lenient_free() whatever the result.
 *  @return RING_OK, RING_ERR_CONFIG, RING_ERR_MEMORY. */
ring_status lenient_read(lenient_text *text, const char *name, const char *source, size_t length,
                         faults *list);
void lenient_free(lenient_text *text);

/** @return the byte of the source where the key of @p value begins; of a value without one, that of
 *  what it lies in. The reader keeps it in a member that cJSON has for numbers alone. */
static inline size_t lenient_place(const cJSON *value)
{
    return (size_t)value->valueint;
}

/** train_fail() with "name:line:column: " before the text. @param at  byte of the source. */
ring_status lenient_fail(const lenient_text *text, size_t at, ring_status status,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
