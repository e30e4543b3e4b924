/* SPDX-License-Identifier: Apache-2.0
 *
 * heap: provides the memory of ring_mem_alloc(). Each process has one anonymous file (memfd), far
 * larger than the memory in use, so that peers of the host map it once and see every later
 * allocation. The file has no name in any directory, so the kernel removes it even if the process
 * is killed. Pages are committed when they are allocated, and only as many as the machine and the
 * memory cgroups allow: a lack of memory is an error of ring_mem_alloc() and not a SIGBUS later.
 * Only memory that other processes allocate at the same moment is not taken into account.
 *
 * A forked child cannot access its parent's heap. The addresses fault, and the child may create a
 * heap itself (docs/decisions/0010).
 */
#ifndef RING_HEAP_H
#define RING_HEAP_H

#include "base.h"

/** Creates the heap of this process unless it exists. All functions are thread-safe. */
ring_status heap_open(void);

/** @return the memfd of this process's heap, -1 before heap_open(); owned by the heap. */
int heap_fd(void);
/** @return the bytes of its address space, which are the limit of offsets; 0 before heap_open(). */
size_t heap_span(void);
/** @return the address of offset 0; NULL before heap_open(). */
void *heap_base(void);

ring_status heap_alloc(void **ptr, size_t bytes);
ring_status heap_free(void *ptr);

/** @return a reference to [ptr, ptr+bytes) that peers can map: the offset plus 1, or 0 if the
 * memory is not in the heap. */
uint64_t heap_ref(const void *ptr, size_t bytes);

/** @param[out] base, size  the whole allocation, all of which is committed.
 *  @return true if [ptr, ptr+bytes) is within one allocation. */
bool heap_allocation(const void *ptr, size_t bytes, void **base, size_t *size);
/** Sets the process's only watcher. @param freeing  called before each allocation is freed, without
 *  a lock held. */
void heap_watch(void (*freeing)(size_t offset, size_t bytes));

/** Maps a peer's heap (its memfd). A file that is mapped already is not mapped again.
 *  @param bytes  the peer's heap_span(), which the file must have.
 *  @param[out] base  the address of offset 0, for heap_unmap_peer().
 *  @return RING_ERR_MEMORY if this process has no address space for it. */
ring_status heap_map_peer(int fd, size_t bytes, void **base);
void heap_unmap_peer(void *base);

#endif
