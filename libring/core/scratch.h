/* SPDX-License-Identifier: Apache-2.0
 * scratch: memory for partial sums and products. */
#ifndef RING_CORE_SCRATCH_H
#define RING_CORE_SCRATCH_H

#include "comm.h"

/** Takes memory for partial sums. RING_IN_PROGRESS while earlier works use all that a communicator
 *  may use, or have still to take theirs. */
ring_status scratch_take(work *w);
/** Takes STAGE_BYTES that links reach, beyond SCRATCH_MOST: only the work whose message comes next
 *  on a channel needs them. */
ring_status scratch_take_stage(work *w);
/** Takes memory for products, beyond SCRATCH_MOST: as much as calls under way need at a time. */
ring_status scratch_take_products(ring_comm *comm, size_t bytes, char **data);
void scratch_give_back(ring_comm *comm, const char *data);
void scratch_free(ring_comm *comm);
/** SCRATCH_MOST: bytes that one communicator uses at a time. STAGE_BYTES: bytes of a message that
 *  one get brings to scratch memory. */
enum { SCRATCH_MOST = 8 << 20, STAGE_BYTES = 128 << 10 };

#endif
