/* SPDX-License-Identifier: Apache-2.0
 * scratch: provides memory for partial sums, staged messages and products, and keeps it for later
 * works. */
#ifndef RING_CORE_SCRATCH_H
#define RING_CORE_SCRATCH_H

#include "comm.h"

/** Sets w->scratch to memory for partial sums. @return RING_IN_PROGRESS while earlier works use all
 *  of the communicator's scratch memory, or have not taken their scratch memory yet. */
ring_status scratch_take(work *w);
/** Sets w->stage to STAGE_BYTES of memory that links can access. This memory does not count towards
 *  SCRATCH_MOST, because only the work whose message is next on a channel needs it. */
ring_status scratch_take_stage(work *w);
/** Takes memory for products. It does not count towards SCRATCH_MOST, because all calls in flight
 *  need their products at the same time. */
ring_status scratch_take_products(ring_comm *comm, size_t bytes, char **data);
/** Returns memory of any of these functions, for use by later works. */
void scratch_give_back(ring_comm *comm, const char *data);
/** Frees all scratch memory of the communicator. */
void scratch_free(ring_comm *comm);
/** SCRATCH_MOST: bytes that one communicator uses at a time. STAGE_BYTES: bytes of a message that
 *  one get fetches into scratch memory. */
enum { SCRATCH_MOST = 8 << 20, STAGE_BYTES = 128 << 10 };

#endif
