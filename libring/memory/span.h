/* SPDX-License-Identifier: Apache-2.0
 *
 * span: reserves and maps the address space of a heap (heap.h), this process's own or a peer's, and
 * chooses a size for it that suits the machine.
 */
#ifndef RING_SPAN_H
#define RING_SPAN_H

#include "base.h"

/** The least size of a heap, and the most that a process reserves, in bytes. */
#define SPAN_LEAST ((size_t)16 << 20)
#define SPAN_MOST ((size_t)64 << 30)

/** A mapping of a whole memory file. */
typedef struct span {
    char *base;
    size_t bytes;
    void *reserved;        /* the start of the reserved addresses that contain the mapping */
    size_t reserved_bytes; /* their number */
} span;

/** @return the bytes of address space for one heap, a multiple of 2 MiB: twice the machine's
 * memory, or less if a limit of this process requires it. Address space that is not allocated costs
 * no memory.
 *  @param[out] bound  names the limit that determines the size, for messages. */
size_t span_sensible(const char **bound);

/** Maps the first @p bytes of a file. The mapping is left out of core dumps, which would create and
 *  write every page of the file. It is not inherited by forked children, with which the memory
 * would be shared, and which would keep it alive. Mappings are staggered: they begin at different
 * offsets from multiples of large powers of two. Buffers at distances of such a power compete for
 * the same lines of the CPU's caches, which made calls seven times slower.
 *  @return false, with errno set, if it fails. */
bool span_map(int fd, size_t bytes, span *out);
/** Unmaps the span, and frees its addresses. */
void span_unmap(const span *s);

/** Reserves the addresses of the mapping in a forked child, which does not inherit the mapping, so
 * that an access faults and no other memory is mapped there. */
void span_bar(const span *s);

/** @return the bytes of a page. */
size_t span_page(void);

#endif
