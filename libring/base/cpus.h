/* SPDX-License-Identifier: Apache-2.0
 *
 * cpus: reports how many CPUs this process may use. That may be fewer than the machine has, because
 * an affinity mask limits the choice of CPUs, and a cgroup limits the CPU time.
 */
#ifndef RING_CPUS_H
#define RING_CPUS_H

#include <stdbool.h>
#include <stdint.h>

/** The CPUs that the calling thread may run on. */
typedef struct cpus_allowed {
    uint32_t count;
    uint32_t set; /* hash of the affinity mask: equal for equal masks */
} cpus_allowed;

/** @return the CPUs of the calling thread; all online CPUs, and set 0, if the kernel does not
 * report them. */
cpus_allowed cpus_read(void);

/** @return the CPU time that the cgroups grant, in CPUs: 1.5 means 1.5 s of CPU time per second. 0
 *  means that there is no limit.
 *  @param root  see cgroup_visit(). */
double cpus_quota(const char *root);

#endif
