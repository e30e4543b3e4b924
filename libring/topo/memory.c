/* SPDX-License-Identifier: Apache-2.0
 * How much memory there is, and how much of it a container may have; the host's name. */
#include "sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static double bytes_of_line(const char *line)
{
    char *end;
    const double bytes = strtod(line, &end);
    return end == line ? 0 : bytes; /* "max" is no limit */
}

static size_t meminfo(const char *key)
{
    char value[64];
    if (!sysfs_value(value, sizeof value, "/proc/meminfo", key))
        return 0;
    return (size_t)strtoull(value, NULL, 10) << 10;
}

void topo_memory_read(topo_memory *memory)
{
    memory->total = meminfo("MemTotal:");
    memory->available = meminfo("MemAvailable:");
    memory->limit = (size_t)sysfs_cgroup_limit("memory.max", bytes_of_line);
    if (memory->limit >= memory->total)
        memory->limit = 0;
}

void topo_hostname(char *out, size_t size)
{
    if (gethostname(out, size) != 0)
        snprintf(out, size, "localhost");
    out[size - 1] = '\0';
}
