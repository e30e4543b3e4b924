/* SPDX-License-Identifier: Apache-2.0
 * rdma_trial: ports of adapters that send to themselves, by the links that jobs use. */
#ifndef DOCTOR_RDMA_TRIAL_H
#define DOCTOR_RDMA_TRIAL_H

#include "facts.h"

/** Uses each active port of this machine, but none below a root; takes about a second a port, and
 * at most a few. A build without verbs uses none. */
void rdma_try_ports(facts *f);

#endif
