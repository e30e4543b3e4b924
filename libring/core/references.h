/* SPDX-License-Identifier: Apache-2.0
 * references: memory of a work for its peers, and of theirs for it. */
#ifndef RING_CORE_REFERENCES_H
#define RING_CORE_REFERENCES_H

#include "comm.h"

/** @return a reference to memory of the work that the channel's peer can use, 0: none. */
uint64_t channel_ref(const work *work, const channel *c, const char *at, size_t bytes);
/** @return the address here of a peer's memory; NULL with RING_ERR_PEER's text if the reference
 *  leads out of its bounds, or is not aligned to the elements of @p work's call. */
void *channel_map(const work *work, const channel *c, uint64_t ref, size_t bytes);
/** Gets bytes of the peer's memory to @p to, which the link must reach. RING_IN_PROGRESS: the work
 *  waits until they are there, and then calls this again with the same arguments. */
ring_status channel_fetch(work *work, channel *c, char *to, uint64_t ref, size_t bytes);

#endif
