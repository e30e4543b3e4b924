/* SPDX-License-Identifier: Apache-2.0
 *
 * yaml_subset: parses the YAML of launchers' configuration files: "key: value" lines, sections of
 * one level, plain and quoted scalars, lists of scalars, and comments; or the same content as JSON.
 * Other syntax is rejected with its position, never guessed.
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
    YAML_QUOTED, /* a text, even if it looks like a number */
    YAML_LIST    /* a list, or {}; its value is "" if all items are empty, else "items" */
} yaml_kind;

typedef struct yaml_entry {
    char section[YAML_KEY_MAX]; /* "" at the top level */
    char key[YAML_KEY_MAX];
    char value[YAML_VALUE_MAX]; /* printable ASCII */
    yaml_kind kind;
    bool is_section;
    size_t at; /* offset of the key in the text */
} yaml_entry;

typedef struct yaml_subset {
    yaml_entry list[YAML_ENTRIES_MAX]; /* in the order of the lines */
    size_t count;
    /* If the text is rejected: */
    char problem[YAML_PROBLEM_MAX]; /* the reason */
    size_t line, column;            /* its position, from 1 */
    size_t at;                      /* its offset in the text */
} yaml_subset;

/** @param text  [length], any bytes. @return false if it is rejected; out->problem says why. */
bool yaml_read(yaml_subset *out, const char *text, size_t length);

/** @return the entry of a key, or NULL. @param section  "" for the top level. */
const yaml_entry *yaml_find(const yaml_subset *yaml, const char *section, const char *key);

/** @return true if the value is null, ~ or missing. */
bool yaml_is_null(const yaml_entry *entry);

/** Reads a plain true, false, yes, no, on or off, in any case. @return false for other values. */
bool yaml_bool(const yaml_entry *entry, bool *value);

#endif
