/* SPDX-License-Identifier: Apache-2.0
 *
 * span: reserves and maps the address space of a heap, this process's own or a peer's, and chooses
 * a size for it that suits the machine.
 */
#ifndef RING_SPAN_H
#define RING_SPAN_H

#include "base.h"

/** The least size that is of use, and the most that a process reserves. */
#define SPAN_LEAST ((size_t)16 << 20)
#define SPAN_MOST ((size_t)64 << 30)

/** A mapping of a whole memory file. */
typedef struct span {
    char *base;
    size_t bytes;
    void *reserved; /* start of the reservation that contains it */
    size_t reserved_bytes;
} span;

/** @return the bytes of address space for one heap, a multiple of 2 MiB: twice the machine's
 * memory, as far as the limits of this process allow. Unallocated bytes cost nothing.
 *  @param[out] bound  names the limit that decided the size, for messages. */
size_t span_sensible(const char **bound);

/** Maps the first @p bytes of a file. The mapping is left out of core dumps, which would create and
 *  write every page of the file, and is not inherited by forked children, which would share memory
 *  that should be private and keep it alive. Mappings begin at different offsets from multiples of
 *  large powers of two, because buffers at such distances alias in the CPU's caches, which costs a
 *  factor of seven.
 *  @return false with errno set. */
bool span_map(int fd, size_t bytes, span *out);
void span_unmap(const span *s);

/** Reserves the addresses of the mapping in a forked child, which does not inherit it. An access
 *  faults, and nothing else is mapped there. */
void span_bar(const span *s);

/** @return the bytes of a page. */
size_t span_page(void);

#endif
