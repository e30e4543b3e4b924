/* SPDX-License-Identifier: Apache-2.0
 *
 * sysfs: reads the small files of /proc and /sys. A file that is missing or cannot be parsed means
 * that the value is unknown, and is never an error.
 */
#ifndef RING_SYSFS_H
#define RING_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

/* Marks the argument number `at` of a function as a printf format of a path. */
#define SYSFS_PATH(at) __attribute__((format(printf, at, (at) + 1)))

/** Reads the first line of a file, without its newline. @return false, and "", if that fails. */
SYSFS_PATH(3) bool sysfs_line(char *out, size_t size, const char *path_format, ...);
/** @return the number at the start of a file; @p fallback if there is none. */
SYSFS_PATH(2) double sysfs_number(double fallback, const char *path_format, ...);
/** Reads the rest of the first line that starts with @p key, without leading blanks and ':'. */
SYSFS_PATH(4)
bool sysfs_value(char *out, size_t size, const char *key, const char *path_format, ...);
/** Calls @p take for each line of a file until take() returns true. @return true if take() did. */
SYSFS_PATH(3)
bool sysfs_find(bool (*take)(char *line, void *context), void *context, const char *path_format,
                ...);
/** Calls @p take for each name in a folder, sorted, without those that begin with a dot. */
SYSFS_PATH(3)
void sysfs_each(void (*take)(const char *name, void *context), void *context,
                const char *folder_format, ...);
/** @return true if the file or folder exists. */
SYSFS_PATH(1) bool sysfs_exists(const char *path_format, ...);

#endif
