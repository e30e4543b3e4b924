/* SPDX-License-Identifier: Apache-2.0
 *
 * cores: lists the cores of this machine, for cpu.c. The build chooses the implementation: hwloc
 * (cores_hwloc.c) where it is installed, else the files of /sys (cores_sysfs.c).
 */
#ifndef RING_TOPO_CORES_H
#define RING_TOPO_CORES_H

#include "topo.h"

/** Sets the cores, packages, numas and source of @p cpu, whose other members are set already. Lists
 *  only cores with a CPU in @p allowed, the CPUs that this process may run on. */
ring_status cores_read(topo_cpu *cpu, const cpu_set_t *allowed);

#endif
