/* SPDX-License-Identifier: Apache-2.0
 *
 * keys: holds the table of DeepSpeed's configuration keys. The entry of a key that this version
 * honours names its field in train_config. A key that does not change results, such as one about
 * logging, timing or saving, is accepted with a note. A key that would change results is refused,
 * because it is not supported yet.
 */
#ifndef TRAIN_KEYS_H
#define TRAIN_KEYS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum key_kind {
    KEY_SECTION, /* an object whose keys are in the table */
    KEY_OPEN,    /* an object whose keys are not checked, except those in the table */
    KEY_INT,     /* a long, written as 500 or 5e2 */
    KEY_REAL,    /* a double */
    KEY_BOOL,
    KEY_TEXT,   /* a char[]; one of the choices if there are any */
    KEY_CHOICE, /* an enumeration: 1 + the index among the choices; 0: not given */
    KEY_PAIR,   /* a double[2] */
    KEY_RANKS,  /* a rank_numbers: a whole number, or a list with one for each rank */
    KEY_ANY
} key_kind;

typedef enum key_use {
    USE_HONOURED,
    USE_NOTE, /* accepted without effect; a note says so unless the value is the initial one */
    USE_LATER /* only the initial value is accepted, any other is refused */
} key_use;

typedef struct config_key {
    const char *path;
    key_kind kind;
    key_use use;
    const char *initial; /* default; NULL: none */
    const char *scope;   /* types that have the key, such as "Adam AdamW"; NULL: all types */
    const char *choices; /* "log linear"; NULL: any */
    const char *help;    /* honoured: its meaning; note: why it has no effect; later: what to do */
    double least, most;  /* range of a number */
    size_t field, bytes; /* offset and size of the field in train_config; bytes 0: no field */
} config_key;

extern const config_key config_keys[];
extern const size_t config_key_count;

/** @return the table's entry for @p path, or NULL. */
const config_key *config_key_find(const char *path);

/** @return true if @p path is in a section whose keys are not checked. */
bool config_key_open(const char *path);

/** @return the known path that is most similar to the unknown @p path: a key of the same section
 *  with a similar name, or else a key of another section with the same name; NULL if there is no
 *  such key. A name and its initials are similar: learning_rate and lr. */
const char *config_key_nearest(const char *path);

enum { CONFIG_ADVICE_MAX = 64 };

/** Writes "; did you mean \"…\"?" with the word of @p list that is most similar to @p word, or ""
 * if no word is similar. @param list  words separated by blanks, or by commas and blanks */
void config_choice_advice(const char *list, const char *word, char advice[CONFIG_ADVICE_MAX]);

/** @return the last part of a path: "lr" for "optimizer.params.lr". */
const char *config_key_name(const char *path);

#endif
