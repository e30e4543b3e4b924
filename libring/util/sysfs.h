/* SPDX-License-Identifier: Apache-2.0
 *
 * sysfs: reading the small files of /proc and /sys. A file that is missing or odd is "not known",
 * never an error.
 */
#ifndef RING_SYSFS_H
#define RING_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

#define SYSFS_PATH(at) __attribute__((format(printf, at, (at) + 1)))

/** First line of a file, without its newline. @return false, and "", if it cannot be read. */
SYSFS_PATH(3) bool sysfs_line(char *out, size_t size, const char *path_format, ...);
/** A number at the start of a file. @return @p fallback if there is none. */
SYSFS_PATH(2) double sysfs_number(double fallback, const char *path_format, ...);
/** The rest of the first line that starts with @p key, without blanks and ':'. */
SYSFS_PATH(4)
bool sysfs_value(char *out, size_t size, const char *key, const char *path_format, ...);
/** Calls @p take for the lines of a file, until it returns true. @return true: it has. */
SYSFS_PATH(3)
bool sysfs_find(bool (*take)(char *line, void *context), void *context, const char *path_format,
                ...);
/** Calls @p take for each name in a folder, sorted, without those that begin with a dot. */
SYSFS_PATH(3)
void sysfs_each(void (*take)(const char *name, void *context), void *context,
                const char *folder_format, ...);
SYSFS_PATH(1) bool sysfs_exists(const char *path_format, ...);

#endif
