/* SPDX-License-Identifier: Apache-2.0
 * references: lets peers access a work's memory by reference, and accesses memory to which they
 * refer. */
#ifndef RING_CORE_REFERENCES_H
#define RING_CORE_REFERENCES_H

#include "comm.h"

/** @return a reference to the work's memory that the channel's peer can use; 0 if it cannot access
 *  this memory. */
uint64_t channel_ref(const work *work, const channel *c, const char *at, size_t bytes);
/** @return the local address of a peer's memory. If the reference is out of bounds or not aligned
 *  to the elements of @p work's call, sets fail_text() for RING_ERR_PEER and returns NULL. */
void *channel_map(const work *work, const channel *c, uint64_t ref, size_t bytes);
/** Gets @p bytes bytes of the peer's memory into @p to, which the link must be able to access.
 *  @return RING_IN_PROGRESS if the work waits for the bytes. Call it again with the same
 *  arguments. */
ring_status channel_fetch(work *work, channel *c, char *to, uint64_t ref, size_t bytes);

#endif
