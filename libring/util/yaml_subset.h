/* SPDX-License-Identifier: Apache-2.0
 *
 * yaml_subset: the YAML of launchers' configuration files: "key: value" lines, sections of one
 * level, plain and quoted scalars, lists of scalars, comments; and the same written as JSON. Other
 * syntax is rejected with its place, never guessed.
 */
#ifndef RING_YAML_SUBSET_H
#define RING_YAML_SUBSET_H

#include <stdbool.h>
#include <stddef.h>

enum {
    YAML_ENTRIES_MAX = 128,
    YAML_KEY_MAX = 64,
    YAML_VALUE_MAX = 256,
    YAML_PROBLEM_MAX = 160,
    YAML_FILE_MAX = 64 << 10
};

typedef enum yaml_kind {
    YAML_NOTHING, /* no value: null, or a section if indented lines follow */
    YAML_PLAIN,
    YAML_QUOTED, /* a text whatever is in it */
    YAML_LIST    /* or {}; its value is "" if all of its items are empty */
} yaml_kind;

typedef struct yaml_entry {
    char section[YAML_KEY_MAX]; /* "" at the top level */
    char key[YAML_KEY_MAX];
    char value[YAML_VALUE_MAX]; /* printable ASCII */
    yaml_kind kind;
    bool is_section;
    size_t at; /* byte of the key */
} yaml_entry;

typedef struct yaml_subset {
    yaml_entry list[YAML_ENTRIES_MAX]; /* in the order of the lines */
    size_t count;
    /* Of a text that is refused: */
    char problem[YAML_PROBLEM_MAX]; /* why */
    size_t line, column;            /* from 1 */
    size_t at;                      /* byte */
} yaml_subset;

/** @param text  [length], any bytes. @return false: out->problem says why. */
bool yaml_read(yaml_subset *out, const char *text, size_t length);

/** @return the entry, or NULL. @param section  "": at the top level. */
const yaml_entry *yaml_find(const yaml_subset *yaml, const char *section, const char *key);

/** @return true for null, ~ and no value. */
bool yaml_is_null(const yaml_entry *entry);

/** Reads a plain true or false, or yes, no, on, off, in any case. @return false: it is none. */
bool yaml_bool(const yaml_entry *entry, bool *value);

#endif
