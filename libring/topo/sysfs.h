/* SPDX-License-Identifier: Apache-2.0
 *
 * sysfs: reading the small files of /proc and /sys. A file that is missing or odd is
 * "not known", never an error.
 */
#ifndef RING_TOPO_SYSFS_H
#define RING_TOPO_SYSFS_H

#include "topo.h"

/** First line of a file, without its newline. @return false if it cannot be read. */
bool sysfs_line(char *out, size_t size, const char *path_format, ...) RING_PRINTF(3, 4);
/** A number at the start of a file. @return @p fallback if there is none. */
long sysfs_number(long fallback, const char *path_format, ...) RING_PRINTF(2, 3);
/** The rest of the first line of @p path that starts with @p key, without blanks and ':'. */
bool sysfs_value(char *out, size_t size, const char *path, const char *key);
/** The smallest limit that @p file ("cpu.max") states on the way from this process's cgroup
 *  to the root, as @p read understands a line; 0 if there is none. */
double sysfs_cgroup_limit(const char *file, double (*read)(const char *line));

/** Cores of this machine, by whichever source was built in. */
ring_status cores_read(topo_cpu *cpu, const cpu_set_t *allowed);

#endif
