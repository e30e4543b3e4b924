/* SPDX-License-Identifier: Apache-2.0
 * device_seats: the seats of a communicator's ranks on their accelerators. */
#ifndef RING_CORE_DEVICE_SEATS_H
#define RING_CORE_DEVICE_SEATS_H

#include "comm.h"

/** Takes a seat and meets the other ranks, collectively. If one rank cannot, no rank has a seat,
 *  and the reason is logged. */
ring_status device_calls_open(ring_comm *comm, const accelerator *a);

#endif
