/* SPDX-License-Identifier: Apache-2.0
 * self_pair: matches sends and receives of a rank to itself, which need no link. */
#ifndef RING_CORE_SELF_PAIR_H
#define RING_CORE_SELF_PAIR_H

#include "work.h"

/** Sends and recvs of this rank to itself: their numbers, and the works without a partner. */
typedef struct self_pair {
    uint64_t sends, recvs;
    work *first, **end; /* oldest first, linked by wait.next */
} self_pair;

/** Matches send k with recv k. @param[in,out] w  the send or the recv; on success the recv, which
 *  copies. @return RING_IN_PROGRESS if the matching call has not been made; the work then waits for
 *  it. RING_ERR_MISMATCH if the two calls differ. */
ring_status self_pair_meet(work **w);
/** Drops the works that wait for a partner. */
void self_pair_clear(ring_comm *comm);
/** Makes a recv copy from the buffer of the send with which it was matched. The end of the recv
 *  also ends the send. */
ring_status self_pair_join(work *receiver, work *sender);

#endif
