/* SPDX-License-Identifier: Apache-2.0
 * init: making a communicator. */
#ifndef RING_CORE_INIT_H
#define RING_CORE_INIT_H

#include "comm.h"

/** Makes a communicator over @p world, which it owns from here. @param parent  NULL: the first one.
 *  @param a  the accelerator that may run its calls; NULL: none. */
ring_status comm_new(control_world *world, const ring_comm *parent, const accelerator *a,
                     double started, ring_comm **out);

/** Makes a communicator of ranks of @p parent that have agreed on an id, first rank first. */
ring_status comm_derive(ring_comm *parent, uint64_t id, const int *ranks, int count,
                        ring_comm **out);
/** Destroys one that some rank could not make, if this rank has; fail_text() stays.
 *  @return @p status. */
ring_status comm_undo(ring_comm **comm, ring_status status);

#endif
