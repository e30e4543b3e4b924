/* SPDX-License-Identifier: Apache-2.0
 *
 * cores: by whichever source was built in, hwloc or /sys.
 */
#ifndef RING_TOPO_CORES_H
#define RING_TOPO_CORES_H

#include "topo.h"

/** Cores of this machine. */
ring_status cores_read(topo_cpu *cpu, const cpu_set_t *allowed);

#endif
