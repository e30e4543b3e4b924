/* SPDX-License-Identifier: Apache-2.0
 *
 * sysfs: reading the small files of /proc and /sys, and finding the cgroups that limit this
 * process. A file that is missing or odd is "not known", never an error.
 */
#ifndef RING_SYSFS_H
#define RING_SYSFS_H

#include "base.h"

/** First line of a file, without its newline. @return false, and "", if it cannot be read. */
bool sysfs_line(char *out, size_t size, const char *path_format, ...) RING_PRINTF(3, 4);
/** A number at the start of a file. @return @p fallback if there is none. */
long sysfs_number(long fallback, const char *path_format, ...) RING_PRINTF(2, 3);
/** The rest of the first line that starts with @p key, without blanks and ':'. */
bool sysfs_value(char *out, size_t size, const char *key, const char *path_format, ...)
    RING_PRINTF(4, 5);

/** A cgroup that this process is in. */
typedef struct cgroup {
    int version;        /* 1 or 2: their files have different names */
    const char *folder; /* where its files are */
    const char *name;   /* for messages */
} cgroup;

/** Calls @p visit for the cgroups of both versions that @p controller ("memory", "cpu") may limit
 *  this process by: from its own to the topmost that can be seen.
 *  @param root  "" for this machine; tests give the folder of a made one. */
void cgroup_visit(const char *root, const char *controller,
                  void (*visit)(const cgroup *at, void *context), void *context);

#endif
