/* SPDX-License-Identifier: Apache-2.0
 * cpus: how many CPUs this process may use. */
#ifndef RING_CPUS_H
#define RING_CPUS_H

#include <stdbool.h>
#include <stdint.h>

/** The CPUs that the calling thread may run on. */
typedef struct cpus_allowed {
    uint32_t count;
    uint32_t set; /* hash of the affinity mask: equal for equal masks */
} cpus_allowed;

/** Without an answer of the kernel: all CPUs that are online, and set 0. */
cpus_allowed cpus_read(void);

/** @return CPUs' worth of time that the cgroup grants, 0: no limit. @param root  as
 *  cgroup_visit()'s. */
double cpus_quota(const char *root);

#endif
