/* SPDX-License-Identifier: Apache-2.0
 * init: making a communicator. */
#ifndef RING_CORE_INIT_H
#define RING_CORE_INIT_H

#include "comm.h"

/** Makes a communicator over @p world, which it owns from here. @param parent  NULL: the first one.
 *  @param a  the accelerator that may run its calls; NULL: none. */
ring_status comm_new(control_world *world, const ring_comm *parent, const accelerator *a,
                     double started, ring_comm **out);

#endif
