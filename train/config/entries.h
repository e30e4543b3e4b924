/* SPDX-License-Identifier: Apache-2.0
 *
 * entries: a file as a flat list of dotted paths in file order, each with its value and its
 * place: "optimizer.params.lr". Checking is then one loop over a list.
 */
#ifndef TRAIN_ENTRIES_H
#define TRAIN_ENTRIES_H

#include "lenient.h"

enum { ENTRY_PATH_MAX = 128 };

typedef struct config_entry {
    char path[ENTRY_PATH_MAX];
    const cJSON *value; /* objects have an entry too, before those of their members */
    size_t at;          /* byte of the key in the source */
} config_entry;

typedef struct config_entries {
    lenient_text text;
    config_entry *list;
    size_t count;
} config_entries;

/** @param source  borrowed until entries_free().
 *  @param list    gets all that is wrong, what is returned too. With RING_OK the entries may be
 *                 looked at nevertheless: those that are wrong are left out.
 *  Free with entries_free() whatever the result. */
ring_status entries_read(config_entries *entries, const char *name, const char *source,
                         size_t length, faults *list);
void entries_free(config_entries *entries);

/** @return the entry with this path, or NULL. */
const config_entry *entries_find(const config_entries *entries, const char *path);

#endif
