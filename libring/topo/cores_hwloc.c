/* SPDX-License-Identifier: Apache-2.0
 * Lists cores with hwloc, which also supports machines whose cores /sys does not describe. */
#include "cores.h"

#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends a core, unless this process may run on none of its CPUs. */
static void add_core(topo_cpu *cpu, hwloc_topology_t topology, hwloc_obj_t object,
                     const cpu_set_t *allowed)
{
    topo_core *core = &cpu->cores[cpu->core_count];
    const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, object);
    const int node = object->nodeset != NULL ? hwloc_bitmap_first(object->nodeset) : 0;
    *core = (topo_core){.package = package != NULL ? (int)package->logical_index : 0,
                        .numa = node > 0 ? node : 0};
    hwloc_cpuset_to_glibc_sched_affinity(topology, object->cpuset, &core->cpus, sizeof core->cpus);
    CPU_AND(&core->cpus, &core->cpus, allowed);
    cpu->core_count += CPU_COUNT(&core->cpus) > 0;
}

/* Lists all cores. In some containers and on some ARM boards hwloc finds no cores; each logical CPU
 * then counts as a core. */
static ring_status add_all(topo_cpu *cpu, hwloc_topology_t topology, const cpu_set_t *allowed)
{
    hwloc_obj_type_t type = HWLOC_OBJ_CORE;
    if (hwloc_get_nbobjs_by_type(topology, type) <= 0)
        type = HWLOC_OBJ_PU;
    const int count = hwloc_get_nbobjs_by_type(topology, type);
    cpu->cores = calloc((size_t)(count > 0 ? count : 1), sizeof *cpu->cores);
    if (cpu->cores == NULL)
        return fail(RING_ERR_MEMORY, "no memory to describe the machine's cores");
    for (int i = 0; i < count; i++)
        add_core(cpu, topology, hwloc_get_obj_by_type(topology, type, (unsigned)i), allowed);
    const int packages = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE);
    const int numas = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    cpu->packages = packages > 0 ? packages : 1;
    cpu->numas = numas > 0 ? numas : 1;
    return RING_OK;
}

ring_status cores_read(topo_cpu *cpu, const cpu_set_t *allowed)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return fail(RING_ERR_MEMORY, "no memory for hwloc");
    const unsigned version = hwloc_get_api_version();
    snprintf(cpu->source, sizeof cpu->source, "hwloc API %u.%u.%u", version >> 16,
             version >> 8 & 255, version & 255);
    const ring_status status = hwloc_topology_load(topology) == 0
                                   ? add_all(cpu, topology, allowed)
                                   : fail(RING_ERR_SYSTEM, "hwloc cannot read this machine: %m");
    hwloc_topology_destroy(topology);
    return status;
}
