/* SPDX-License-Identifier: Apache-2.0
 * facts_files: the small files that facts are read from, below the root. */
#ifndef DOCTOR_FACTS_FILES_H
#define DOCTOR_FACTS_FILES_H

#include "facts.h"

/** Calls @p take for each name in a folder, sorted, without those that begin with a dot. */
void facts_each(const facts *f, void (*take)(const facts *f, const char *name, void *context),
                void *context, const char *folder_format, ...) RING_PRINTF(4, 5);
/** A number at the start of a file; -1 if there is none. */
double facts_number(const facts *f, const char *path_format, ...) RING_PRINTF(2, 3);
/** First line of a file. @return false, and "", if it cannot be read. */
bool facts_line(const facts *f, char *out, size_t size, const char *path_format, ...)
    RING_PRINTF(4, 5);
/** Calls @p take for the lines of a file, until it returns true. @return true: it has. */
bool facts_find_line(const facts *f, bool (*take)(char *line, void *context), void *context,
                     const char *path_format, ...) RING_PRINTF(4, 5);
bool facts_exists(const facts *f, const char *path);

#endif
