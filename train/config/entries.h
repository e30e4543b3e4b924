/* SPDX-License-Identifier: Apache-2.0
 *
 * entries: turns the nested objects of a configuration file into a flat list in file order. Each
 * entry has a dotted path such as "optimizer.params.lr", its value and its place in the file, so
 * that one loop can check them all.
 */
#ifndef TRAIN_ENTRIES_H
#define TRAIN_ENTRIES_H

#include "lenient.h"

enum { ENTRY_PATH_MAX = 128 };

typedef struct config_entry {
    char path[ENTRY_PATH_MAX];
    const cJSON *value; /* objects have an entry too, before those of their members */
    size_t at;          /* offset of the key in the source, in bytes */
} config_entry;

typedef struct config_entries {
    lenient_text text;
    config_entry *list;
    size_t count;
} config_entries;

/** @param source  borrowed until entries_free().
 *  @param list    receives all errors, including the one returned. RING_OK means that the entries
 *                 can be used even if there are errors: invalid entries are left out.
 *  Free with entries_free() whatever the result. */
ring_status entries_read(config_entries *entries, const char *name, const char *source,
                         size_t length, faults *list);
void entries_free(config_entries *entries);

/** @return the entry with this path, or NULL. */
const config_entry *entries_find(const config_entries *entries, const char *path);

#endif
