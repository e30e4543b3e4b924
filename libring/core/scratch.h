/* SPDX-License-Identifier: Apache-2.0
 * scratch: provides memory for partial sums, staged messages and products, and keeps it for later
 * works. */
#ifndef RING_CORE_SCRATCH_H
#define RING_CORE_SCRATCH_H

#include "comm.h"

/** Takes memory for partial sums. @return RING_IN_PROGRESS while earlier works use all of a
 *  communicator's scratch memory or have not taken theirs yet. */
ring_status scratch_take(work *w);
/** Takes STAGE_BYTES that links reach. They do not count towards SCRATCH_MOST, because only the
 *  work whose message is next on a channel needs them. */
ring_status scratch_take_stage(work *w);
/** Takes memory for products. It does not count towards SCRATCH_MOST: all calls in flight need
 *  theirs at the same time. */
ring_status scratch_take_products(ring_comm *comm, size_t bytes, char **data);
void scratch_give_back(ring_comm *comm, const char *data);
void scratch_free(ring_comm *comm);
/** SCRATCH_MOST: bytes that one communicator uses at a time. STAGE_BYTES: bytes of a message that
 *  one get fetches into scratch memory. */
enum { SCRATCH_MOST = 8 << 20, STAGE_BYTES = 128 << 10 };

#endif
