/* SPDX-License-Identifier: Apache-2.0
 *
 * keys: holds the table of DeepSpeed's configuration keys. A key that this version honours names
 * its field in train_config. Other keys are either noted, because they do not change results (they
 * only log, time or save, or concern something else), or refused, because they would change results
 * and are not supported yet.
 */
#ifndef TRAIN_KEYS_H
#define TRAIN_KEYS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum key_kind {
    KEY_SECTION, /* an object whose keys are in the table */
    KEY_OPEN,    /* an object whose other keys are not checked */
    KEY_INT,     /* long; written 500 or 5e2 */
    KEY_REAL,    /* double */
    KEY_BOOL,
    KEY_TEXT,   /* char[], one of choices if there are any */
    KEY_CHOICE, /* an enumeration: 1 + the position among choices; 0: not given */
    KEY_PAIR,   /* double[2] */
    KEY_RANKS,  /* rank_numbers: a whole number, or a list with one for each rank */
    KEY_ANY
} key_kind;

typedef enum key_use {
    USE_HONOURED,
    USE_NOTE, /* accepted, no effect: a note says so, unless it has its initial value */
    USE_LATER /* only its initial value is accepted, anything else is refused */
} key_use;

typedef struct config_key {
    const char *path;
    key_kind kind;
    key_use use;
    const char *initial; /* default; NULL: none */
    const char *scope;   /* "SGD": only with this type of its section; NULL: always */
    const char *choices; /* "log linear"; NULL: any */
    const char *help;    /* honoured: meaning; note: why not; later: what to do instead */
    double least, most;  /* of numbers */
    size_t field, bytes; /* of train_config */
} config_key;

extern const config_key config_keys[];
extern const size_t config_key_count;

/** @return the table's line for @p path, or NULL. */
const config_key *config_key_find(const char *path);

/** @return true if @p path is in a section whose keys are not checked. */
bool config_key_open(const char *path);

/** @return the known path most similar to @p path: a key of the same section, else any key of that
 *  name; NULL if there is none. Words and their initials are similar: learning_rate and lr. */
const char *config_key_nearest(const char *path);

enum { CONFIG_ADVICE_MAX = 64 };

/** Writes "; did you mean \"…\"?" with the word of @p list that is most similar to @p word, or ""
 * if no word is. @param list  separated by blanks, or commas and blanks */
void config_choice_advice(const char *list, const char *word, char advice[CONFIG_ADVICE_MAX]);

/** @return the last part of a path: "lr" of "optimizer.params.lr". */
const char *config_key_name(const char *path);

#endif
