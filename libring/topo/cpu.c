/* SPDX-License-Identifier: Apache-2.0
 * Reads how many CPUs the machine has, how many of them this process may use, and their model. */
#include "cores.h"
#include "cpus.h"
#include "sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Orders cores by package, then by the lowest logical CPU, for qsort(). */
static int by_place(const void *a, const void *b)
{
    const topo_core *x = a, *y = b;
    if (x->package != y->package)
        return x->package < y->package ? -1 : 1;
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        const int has_x = CPU_ISSET(i, &x->cpus) != 0, has_y = CPU_ISSET(i, &y->cpus) != 0;
        if (has_x != has_y)
            return has_y - has_x;
    }
    return 0;
}

ring_status topo_cpu_read(topo_cpu *cpu)
{
    cpu_set_t allowed;
    memset(cpu, 0, sizeof *cpu);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return fail(RING_ERR_SYSTEM, "reading the CPUs of this process (sched_getaffinity): %m");
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    cpu->allowed = CPU_COUNT(&allowed);
    cpu->online = online > 0 ? (int)online : cpu->allowed;
    cpu->quota = cpus_quota("");
    if (!sysfs_value(cpu->model, sizeof cpu->model, "model name", "/proc/cpuinfo"))
        sysfs_value(cpu->model, sizeof cpu->model, "CPU part", "/proc/cpuinfo");
    RING_TRY(cores_read(cpu, &allowed));
    qsort(cpu->cores, cpu->core_count, sizeof *cpu->cores, by_place);
    return RING_OK;
}

void topo_cpu_free(topo_cpu *cpu)
{
    free(cpu->cores);
    memset(cpu, 0, sizeof *cpu);
}
