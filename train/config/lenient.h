/* SPDX-License-Identifier: Apache-2.0
 *
 * lenient: reads JSON as people write it and DeepSpeed's hjson accepts it: with three kinds of
 * comments, trailing or missing commas at the ends of lines, keys and texts in single quotes or
 * without any, and without the outermost braces. Each value keeps its place in the source, so that
 * later messages can give line and column.
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
    cJSON *tree;      /* control characters in its texts are replaced, for messages quote them */
    size_t key_count; /* of all objects */
} lenient_text;

/** @param source  [length], any bytes
 *  @param list    receives all errors, including the one returned. RING_OK means that the tree can
 *                 be used even if there are errors; it has null in place of values that are wrong.
 *  Free with lenient_free() whatever the result.
 *  @return RING_OK, RING_ERR_CONFIG, RING_ERR_MEMORY. */
ring_status lenient_read(lenient_text *text, const char *name, const char *source, size_t length,
                         faults *list);
void lenient_free(lenient_text *text);

/** @return the offset in the source of the key of @p value, or, if it has no key, of the key of the
 *  list that contains it. The reader keeps it in a member that cJSON only uses for numbers. */
static inline size_t lenient_place(const cJSON *value)
{
    return (size_t)value->valueint;
}

/** train_fail() with "name:line:column: " before the text. @param at  offset in the source. */
ring_status lenient_fail(const lenient_text *text, size_t at, ring_status status,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
