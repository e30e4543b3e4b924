/* SPDX-License-Identifier: Apache-2.0
 * lists: v-forms whose blocks lie anywhere. */
#ifndef RING_CORE_LISTS_H
#define RING_CORE_LISTS_H

#include "comm.h"

/** Checks the addresses of the blocks of b->lists, and that written blocks lie apart. */
ring_status lists_check(ring_comm *comm, const program *p, const call_buffers *b);
/** Makes memory of a work for lists_bind() and lists_hold(). */
ring_status lists_make_room(work *w);
void lists_bind(work *w, const call_buffers *b);
/** Holds the regions of a side's blocks by @p hold. @return 0: some block lies in none. */
uint64_t lists_hold(work *w, int side, uint64_t (*hold)(const void *, size_t));
void lists_release(work *w);

#endif
