/* SPDX-License-Identifier: Apache-2.0
 *
 * lenient: reads Hjson, the relaxed JSON that DeepSpeed accepts. It allows three kinds of comments,
 * extra or missing commas at the ends of lines, keys and texts in single quotes or without quotes,
 * and a file without the outermost braces. Each value keeps its place in the source, so that later
 * messages can state line and column.
 */
#ifndef TRAIN_LENIENT_H
#define TRAIN_LENIENT_H

#include <cjson/cJSON.h>
#include <ring/ring.h>

#include "faults.h"

typedef struct lenient_text {
    const char *name;   /* name of the file, for messages; borrowed */
    const char *source; /* borrowed */
    size_t source_length;
    cJSON *tree;      /* control characters in its texts are replaced by '?' */
    size_t key_count; /* number of keys in all objects */
} lenient_text;

/** Reads a text. @param source  [length], any bytes
 *  @param list    receives all errors, including the one returned. RING_OK means that the tree can
 *                 be used even if there are errors; it has null in place of values that are wrong.
 *  Free with lenient_free() whatever the result.
 *  @return RING_OK, RING_ERR_CONFIG, RING_ERR_MEMORY. */
ring_status lenient_read(lenient_text *text, const char *name, const char *source, size_t length,
                         faults *list);
void lenient_free(lenient_text *text);

/** @return the offset in the source of the key of @p value, or, for an item of a list, of the key
 * of that list. lenient_read() stores the offset in valueint, which has no other use here. */
static inline size_t lenient_place(const cJSON *value)
{
    return (size_t)value->valueint;
}

/** Calls train_fail() with "name:line:column: " before the text. @param at  offset in the source.
 */
ring_status lenient_fail(const lenient_text *text, size_t at, ring_status status,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
