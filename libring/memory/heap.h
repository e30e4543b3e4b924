/* SPDX-License-Identifier: Apache-2.0
 *
 * heap: provides the memory of ring_mem_alloc(). Each process has one anonymous file (memfd), which
 * is far larger than the memory in use, so that the peers on its host map it once and can access
 * every later allocation. The file has no name in any directory, so the kernel removes it even if
 * the process is killed. Pages are committed when they are allocated, and only if the machine and
 * the memory cgroups have room for them. So a lack of memory is an error of ring_mem_alloc(), and
 * not a SIGBUS later, unless other processes allocate memory at the same moment.
 *
 * A forked child cannot access its parent's heap: the addresses fault. The child may create a heap
 * of its own (docs/decisions/0010).
 */
#ifndef RING_HEAP_H
#define RING_HEAP_H

#include "base.h"

/** Creates the heap of this process unless it exists. All functions are thread-safe. */
ring_status heap_open(void);

/** @return the memfd of this process's heap, -1 before heap_open(); owned by the heap. */
int heap_fd(void);
/** @return the bytes of the heap's address space, below which all offsets are; 0 before
 *  heap_open(). */
size_t heap_span(void);
/** @return the address of offset 0; NULL before heap_open(). */
void *heap_base(void);

/** Implement ring_mem_alloc() and ring_mem_free(). Allocated memory is zeroed. */
ring_status heap_alloc(void **ptr, size_t bytes);
ring_status heap_free(void *ptr);

/** @return a reference to [ptr, ptr+bytes) that peers can map: the offset plus 1, or 0 if the
 * memory is not in the heap. */
uint64_t heap_ref(const void *ptr, size_t bytes);

/** Finds the allocation that contains [ptr, ptr+bytes).
 *  @param[out] base, size  the whole allocation, whose pages are all committed.
 *  @return false if the range is not within one allocation. */
bool heap_allocation(const void *ptr, size_t bytes, void **base, size_t *size);
/** Sets the callback that is called before an allocation is freed. There is one for the process,
 * and it is called without a lock. */
void heap_watch(void (*freeing)(size_t offset, size_t bytes));

/** Maps a peer's heap, given its memfd. Further calls for the same file return the same mapping.
 *  @param bytes  the peer's heap_span(), which the file must have.
 *  @param[out] base  the address of offset 0, for heap_unmap_peer().
 *  @return RING_ERR_MEMORY if this process has no address space for it. */
ring_status heap_map_peer(int fd, size_t bytes, void **base);
/** Undoes one heap_map_peer(); the last one unmaps the heap. */
void heap_unmap_peer(void *base);

#endif
