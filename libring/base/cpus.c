/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts CPUs by the affinity mask of the thread, and reads the quota of CPU time from its cgroups.
 */
#include "cpus.h"

#include "cgroup.h"
#include "sysfs.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

cpus_allowed cpus_read(void)
{
    cpu_set_t mask;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof mask, &mask) != 0)
        return (cpus_allowed){.count = online > 0 ? (uint32_t)online : 1};
    const unsigned char *bytes = (const unsigned char *)&mask;
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < sizeof mask; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return (cpus_allowed){.count = (uint32_t)CPU_COUNT(&mask), .set = hash};
}

/* Lowers the number of CPUs in *least (0: no limit yet) to the quota of one cgroup. The files have
 * microseconds of CPU time per period: "200000 100000" grants two CPUs, and "max 100000", or -1 in
 * version 1, means that there is no limit. */
static void take_quota(const cgroup *at, void *least)
{
    char line[128] = "";
    double quota = 0, period = 0, *cpus = least;
    if (at->version == 1) {
        quota = (double)sysfs_number(0, "%s/cpu.cfs_quota_us", at->folder);
        period = (double)sysfs_number(0, "%s/cpu.cfs_period_us", at->folder);
    } else if (sysfs_line(line, sizeof line, "%s/cpu.max", at->folder)) {
        (void)sscanf(line, "%lf %lf", &quota, &period);
    }
    if (quota > 0 && period > 0 && (*cpus <= 0 || quota / period < *cpus))
        *cpus = quota / period;
}

double cpus_quota(const char *root)
{
    double cpus = 0;
    cgroup_visit(root, "cpu", take_quota, &cpus);
    return cpus;
}
