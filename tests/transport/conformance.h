/* SPDX-License-Identifier: Apache-2.0
 * The behaviours' declarations. Each runs in a process of its own on a chosen transport. */
#ifndef TEST_TRANSPORT_CONFORMANCE_H
#define TEST_TRANSPORT_CONFORMANCE_H

#include "traffic.h"

#define BEHAVIOUR(name) void behaviour_##name(void);
#define REACHING(name) BEHAVIOUR(name)
#define PROCESSES(name) BEHAVIOUR(name)
#define USERSPACE(name) BEHAVIOUR(name)
#include "behaviours.h"
#undef BEHAVIOUR
#undef REACHING
#undef PROCESSES
#undef USERSPACE

#endif
