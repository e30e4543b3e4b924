/* SPDX-License-Identifier: Apache-2.0
 * Reads the memory of the machine, the memory limit of the process's cgroups, and the host's name.
 */
#include "cgroup.h"
#include "sysfs.h"
#include "topo.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Lowers *least, in bytes, to the memory limit of one cgroup. */
static void take_limit(const cgroup *at, void *least)
{
    const char *file = at->version == 1 ? "memory.limit_in_bytes" : "memory.max";
    const long bytes = sysfs_number(0, "%s/%s", at->folder, file); /* 0 for "max" */
    size_t *limit = least;
    if (bytes > 0)
        *limit = min_size(*limit, (size_t)bytes);
}

/* @return a value of /proc/meminfo in bytes; 0 if it is missing. */
static size_t meminfo(const char *key)
{
    char value[64];
    if (!sysfs_value(value, sizeof value, key, "/proc/meminfo"))
        return 0;
    return (size_t)strtoull(value, NULL, 10) << 10;
}

void topo_memory_read(topo_memory *memory)
{
    memory->total = meminfo("MemTotal:");
    memory->available = meminfo("MemAvailable:");
    memory->limit = SIZE_MAX;
    cgroup_visit("", "memory", take_limit, &memory->limit);
    if (memory->limit >= memory->total)
        memory->limit = 0;
}

void topo_hostname(char *out, size_t size)
{
    if (gethostname(out, size) != 0)
        snprintf(out, size, "localhost");
    out[size - 1] = '\0';
}
