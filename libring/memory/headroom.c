/* SPDX-License-Identifier: Apache-2.0
 * Reads the headroom from /proc/meminfo and from the files of the memory cgroups. */
#include "headroom.h"

#include "cgroup.h"
#include "sysfs.h"

#include <stdlib.h>

/* Lowers the headroom to @p bytes, and sets its bound to @p what and @p name. */
static void take_least(headroom *h, size_t bytes, const char *what, const char *name)
{
    if (bytes >= h->bytes)
        return;
    h->bytes = bytes;
    (void)text_format(h->bound, sizeof h->bound, "%s%s", what, name);
}

/* The file names of cgroups; versions[v - 1] is version v. */
static const struct cgroup_names {
    const char *limit, *usage;
    const char *cache[2]; /* the keys of the page cache's bytes in memory.stat */
} versions[] = {
    {"memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
    {"memory.max", "memory.current", {"inactive_file", "active_file"}},
};

/* Lowers the headroom to the unused memory of one cgroup. */
static void consider_cgroup(const cgroup *at, void *context)
{
    const struct cgroup_names *of = &versions[at->version - 1];
    const long limit = sysfs_number(-1, "%s/%s", at->folder, of->limit); /* -1 for "max" */
    const long used = sysfs_number(-1, "%s/%s", at->folder, of->usage);
    char cache[64];
    if (limit < 0 || used < 0)
        return;
    size_t usage = (size_t)used;
    for (int i = 0; i < 2; i++)
        if (sysfs_value(cache, sizeof cache, of->cache[i], "%s/memory.stat", at->folder))
            usage -= min_size(usage, (size_t)strtoull(cache, NULL, 10));
    take_least(context, (size_t)limit - min_size((size_t)limit, usage),
               "the memory limit of the cgroup ", at->name);
}

void headroom_read(const char *root, headroom *out)
{
    char kib[64];
    *out = (headroom){.bytes = SIZE_MAX};
    if (sysfs_value(kib, sizeof kib, "MemAvailable:", "%s/proc/meminfo", root))
        take_least(out, (size_t)strtoull(kib, NULL, 10) << 10, "the machine's available memory",
                   "");
    cgroup_visit(root, "memory", consider_cgroup, out);
}
