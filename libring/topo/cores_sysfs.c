/* SPDX-License-Identifier: Apache-2.0
 * Lists cores from the files in /sys/devices/system. Logical CPUs with the same package and core
 * number are one core; if a machine does not report these numbers, each logical CPU is a core. */
#include "cores.h"
#include "sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPU_PATH "/sys/devices/system/cpu/cpu%zu/"
enum { NUMA_MAX = 1024 };

/* @return true if a list such as "0-3,8,10-11" contains the number. */
static bool list_has(const char *list, size_t wanted)
{
    while (*list != '\0') {
        char *end;
        const unsigned long first = strtoul(list, &end, 10);
        const unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        if (wanted >= first && wanted <= last)
            return true;
        if (*end != ',')
            return false;
        list = end + 1;
    }
    return false;
}

/* @return the NUMA node of a logical CPU; 0 if it is unknown. */
static int numa_of(size_t cpu_index)
{
    char list[512];
    for (int node = 0; node < NUMA_MAX; node++) {
        if (!sysfs_line(list, sizeof list, "/sys/devices/system/node/node%d/cpulist", node))
            continue;
        if (list_has(list, cpu_index))
            return node;
    }
    return 0;
}

static int count_numas(void)
{
    char list[512];
    int count = 0;
    if (!sysfs_line(list, sizeof list, "/sys/devices/system/node/online"))
        return 1;
    for (size_t node = 0; node < NUMA_MAX; node++)
        count += list_has(list, node);
    return count > 0 ? count : 1;
}

/* Adds a logical CPU to its core, and appends the core to the list if it is new. Core numbers are
 * unique only within a package.
 * @param numbers  [core_count] the core numbers of cpu->cores. @param index  of the logical CPU. */
static void add_cpu(topo_cpu *cpu, long *numbers, size_t index)
{
    const int package = (int)sysfs_number(0, CPU_PATH "topology/physical_package_id", index);
    const long number = sysfs_number((long)index, CPU_PATH "topology/core_id", index);
    size_t at = 0;
    while (at < cpu->core_count && (cpu->cores[at].package != package || numbers[at] != number))
        at++;
    topo_core *core = &cpu->cores[at];
    if (at == cpu->core_count) {
        numbers[at] = number;
        cpu->core_count++;
        *core = (topo_core){.package = package, .numa = numa_of(index)};
        CPU_ZERO(&core->cpus);
    }
    CPU_SET(index, &core->cpus);
    if (package >= cpu->packages)
        cpu->packages = package + 1;
}

ring_status cores_read(topo_cpu *cpu, const cpu_set_t *allowed)
{
    long *numbers = calloc((size_t)cpu->allowed, sizeof *numbers);
    cpu->cores = calloc((size_t)cpu->allowed, sizeof *cpu->cores);
    if (numbers == NULL || cpu->cores == NULL) {
        free(numbers);
        topo_cpu_free(cpu);
        return fail(RING_ERR_MEMORY, "no memory to describe the machine's cores");
    }
    snprintf(cpu->source, sizeof cpu->source, "/sys");
    cpu->numas = count_numas();
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, allowed))
            add_cpu(cpu, numbers, i);
    }
    free(numbers);
    return RING_OK;
}
