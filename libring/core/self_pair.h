/* SPDX-License-Identifier: Apache-2.0
 * self_pair: a rank that sends to itself. */
#ifndef RING_CORE_SELF_PAIR_H
#define RING_CORE_SELF_PAIR_H

#include "work.h"

/** Sends and recvs of this rank to itself: counts, and those without a partner, oldest first. */
typedef struct self_pair {
    uint64_t sends, recvs;
    work *first, **end; /* by `behind` */
} self_pair;

/** Send k meets recv k. RING_IN_PROGRESS: the other one was not called yet; the work waits for it.
 *  @param[in,out] w  either of the two; then the receiver, which is to copy. RING_ERR_MISMATCH. */
ring_status self_pair_meet(work **w);
/** Drops the works that wait for a partner. */
void self_pair_clear(ring_comm *comm);
/** The same for two works that tagged.c has matched: the receiver goes on and ends both. */
ring_status self_pair_join(work *receiver, work *sender);

#endif
