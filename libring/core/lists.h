/* SPDX-License-Identifier: Apache-2.0
 * lists: checks the block addresses of list forms, and binds them to works. A list form is a v-form
 * with an address for each block. */
#ifndef RING_CORE_LISTS_H
#define RING_CORE_LISTS_H

#include "comm.h"

/** Checks that the addresses in b->lists are aligned and not NULL, and that no block that is
 *  written overlaps another. O(ranks log ranks). */
ring_status lists_check(ring_comm *comm, const program *p, const call_buffers *b);
/** Allocates the memory that a work needs for lists_bind() and lists_hold(). */
ring_status lists_make_room(work *w);
/** Computes the work's base addresses for the blocks of b->lists. */
void lists_bind(work *w, const call_buffers *b);
/** Holds the regions of a side's blocks with @p hold, until lists_release(). @return 0 if a block
 *  is in no region. */
uint64_t lists_hold(work *w, int side, uint64_t (*hold)(const void *, size_t));
/** Releases all regions that lists_hold() holds for the work. */
void lists_release(work *w);

#endif
