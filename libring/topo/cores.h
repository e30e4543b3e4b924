/* SPDX-License-Identifier: Apache-2.0
 *
 * cores: lists the cores of this machine, for cpu.c. The build chooses the source: hwloc where it
 * is installed, or /sys.
 */
#ifndef RING_TOPO_CORES_H
#define RING_TOPO_CORES_H

#include "topo.h"

/** Fills in cores, packages, NUMA nodes and source. @param allowed  the CPUs of this process. */
ring_status cores_read(topo_cpu *cpu, const cpu_set_t *allowed);

#endif
