/* SPDX-License-Identifier: Apache-2.0
 *
 * span: the address space of a heap: a sensible size here, and its mappings.
 */
#ifndef RING_SPAN_H
#define RING_SPAN_H

#include "base.h"

/** Less is of no use, more is taken by no process. */
#define SPAN_LEAST ((size_t)16 << 20)
#define SPAN_MOST ((size_t)64 << 30)

/** A mapping of a whole memory file. */
typedef struct span {
    char *base;
    size_t bytes;
    void *reserved; /* the whole reservation */
    size_t reserved_bytes;
} span;

/** Bytes of address space for one heap, a multiple of 2 MiB: twice the memory, as far as the limits
 *  of this process allow. Unallocated bytes cost nothing.
 *  @param[out] bound  the source of the size, for messages. */
size_t span_sensible(const char **bound);

/** Maps the first @p bytes of a file, out of core dumps, for a dump would create and write every
 *  page of it; and out of forked children, for they would share memory that should be private, and
 *  keep it alive. Each mapping starts at a different distance from a multiple of large powers of
 *  two: buffers at such distances alias in the CPU's caches and cost a factor of seven. @return
 *  false with errno set. */
bool span_map(int fd, size_t bytes, span *out);
void span_unmap(const span *s);

/** In a forked child, where the mapping is missing: keeps its addresses without access, so that a
 *  touch faults and no other mapping is put there. */
void span_bar(const span *s);

/** @return bytes of a page. */
size_t span_page(void);

#endif
