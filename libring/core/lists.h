/* SPDX-License-Identifier: Apache-2.0
 * lists: checks and binds the blocks of list forms, which are v-forms with an address for each
 * block. */
#ifndef RING_CORE_LISTS_H
#define RING_CORE_LISTS_H

#include "comm.h"

/** Checks the addresses of the blocks of b->lists, and that blocks that are written do not
 *  overlap. O(ranks log ranks). */
ring_status lists_check(ring_comm *comm, const program *p, const call_buffers *b);
/** Allocates the memory that a work needs for lists_bind() and lists_hold(). */
ring_status lists_make_room(work *w);
/** Computes the work's base addresses for the blocks of b->lists. */
void lists_bind(work *w, const call_buffers *b);
/** Holds the regions of a side's blocks with @p hold. @return 0 if a block is in no region. */
uint64_t lists_hold(work *w, int side, uint64_t (*hold)(const void *, size_t));
void lists_release(work *w);

#endif
