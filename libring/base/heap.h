/* SPDX-License-Identifier: Apache-2.0
 *
 * heap: the memory behind ring_mem_alloc(). One anonymous file (memfd) a process, far
 * larger than what is used, so that peers of the host map it once and every later
 * allocation is already visible to them. It has no name in any directory: whatever kills
 * the process, nothing is left behind. Pages are committed when allocated, so a full
 * machine is an error of ring_mem_alloc() and never a SIGBUS later.
 */
#ifndef RING_HEAP_H
#define RING_HEAP_H

#include "base.h"

/** Bytes of address space of one heap; offsets are below this. */
size_t heap_span(void);

/** Creates the heap of this process if there is none yet. Thread-safe. */
ring_status heap_open(void);

/** @return the memfd of this process's heap, -1 before heap_open(); owned by the heap. */
int heap_fd(void);

ring_status heap_alloc(void **ptr, size_t bytes);
ring_status heap_free(void *ptr);

/** Reference to [ptr, ptr+bytes) that peers can map: offset + 1, or 0 if not in the heap. */
uint64_t heap_ref(const void *ptr, size_t bytes);

/** Bytes allocated now in this process. */
size_t heap_used(void);

/** Maps a peer's heap (its memfd). Each mapping starts at a different distance from a
 *  multiple of large powers of two: buffers at such distances alias in the CPU's caches
 *  and cost a factor of seven. The same file mapped twice gives the same mapping.
 *  @param[out] base  address of offset 0; release with heap_unmap_peer(). */
ring_status heap_map_peer(int fd, void **base);
void heap_unmap_peer(void *base);

#endif
