/* SPDX-License-Identifier: Apache-2.0
 * device_seats: attaches the ranks of a communicator to the accelerators that run their calls. */
#ifndef RING_CORE_DEVICE_SEATS_H
#define RING_CORE_DEVICE_SEATS_H

#include "comm.h"

/** Attaches this rank to @p a and connects it to the other ranks; all ranks call it, when all have
 *  created their parts of the communicator. If one rank fails, no rank gets a seat, and the reason
 *  is logged.
 *  @param parent  the communicator from which this one is derived, or NULL. Seats of derived
 *  communicators lie in the memory of the parent's seats. */
ring_status device_calls_open(ring_comm *comm, const accelerator *a, const ring_comm *parent);

#endif
