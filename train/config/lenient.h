/* SPDX-License-Identifier: Apache-2.0
 *
 * lenient: turns what DeepSpeed's hjson reader accepts and people write (comments of three
 * kinds, trailing commas and none at the ends of lines, keys and texts without quotes or with
 * single ones, no outermost braces) into strict JSON for cJSON, and remembers where everything
 * came from, so that every later message can say line and column.
 */
#ifndef TRAIN_LENIENT_H
#define TRAIN_LENIENT_H

#include <ring/ring.h>

#include "faults.h"

typedef struct lenient_text {
    const char *name;   /* of the file, for messages; borrowed */
    const char *source; /* borrowed */
    size_t source_length;
    char *json; /* strict JSON, ends in NUL */
    size_t length;
    uint32_t *origin; /* [length + 1]: byte of the source behind each byte of json */
    uint32_t *keys;   /* [key_count]: byte of the source of each key, in order */
    size_t key_count;
    faults *faults; /* what reading can go on after; borrowed */
} lenient_text;

/** @param source  [length], any bytes. @return RING_OK, RING_ERR_CONFIG, RING_ERR_MEMORY; what it
 *  can go on after is in @p list. */
ring_status lenient_read(lenient_text *text, const char *name, const char *source, size_t length,
                         faults *list);
void lenient_free(lenient_text *text);

/** train_fail() with "name:line:column: " before the text. @param at  byte of the source. */
ring_status lenient_fail(const lenient_text *text, size_t at, ring_status status,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

/** The error of a text that cJSON refused at byte @p at of text->json. */
ring_status lenient_syntax_error(const lenient_text *text, size_t at);

#endif
