/* SPDX-License-Identifier: Apache-2.0
 *
 * heap: the memory behind ring_mem_alloc(). One anonymous file (memfd) a process, far larger than
 * the memory in use, so that peers of the host map it once and every later allocation is already
 * visible to them. It has no name in any directory: nothing is left behind, even if the process is
 * killed. Pages are committed when allocated, and only as many as the machine and the memory
 * cgroups leave: too little memory is an error of ring_mem_alloc() and never a SIGBUS later. Only
 * memory that other processes take at the same moment is not counted.
 *
 * A forked child has nothing of its parent's heap: the addresses fault, and it may make a heap of
 * its own (docs/decisions/0010).
 */
#ifndef RING_HEAP_H
#define RING_HEAP_H

#include "base.h"

/** Creates the heap of this process if there is none yet. Thread-safe. */
ring_status heap_open(void);

/** @return the memfd of this process's heap, -1 before heap_open(); owned by the heap. */
int heap_fd(void);
/** @return bytes of its address space, 0 before heap_open(); offsets are below. */
size_t heap_span(void);
/** @return address of offset 0, NULL before heap_open(). */
void *heap_base(void);

ring_status heap_alloc(void **ptr, size_t bytes);
ring_status heap_free(void *ptr);

/** Reference to [ptr, ptr+bytes) that peers can map: offset + 1, or 0 if not in the heap. */
uint64_t heap_ref(const void *ptr, size_t bytes);

/** @return true if [ptr, ptr+bytes) lies within one allocation, which @p base and @p size are set
 * to: all of it is committed. */
bool heap_allocation(const void *ptr, size_t bytes, void **base, size_t *size);
/** @param freeing  called with each allocation that ends, before it does and with no lock held.
 *  Once. */
void heap_watch(void (*freeing)(size_t offset, size_t bytes));

/** Maps a peer's heap (its memfd). The same file mapped twice gives the same mapping.
 *  @param bytes  the peer's heap_span(), which the file must have.
 *  @param[out] base  address of offset 0; release with heap_unmap_peer().
 *  @return RING_ERR_MEMORY if this process has no address space for it. */
ring_status heap_map_peer(int fd, size_t bytes, void **base);
void heap_unmap_peer(void *base);

#endif
