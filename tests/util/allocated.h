/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that this process has allocated and not freed, as its allocator counts it. Resident
 * memory says less: it also depends on what the kernel and the allocator keep.
 */
#ifndef TESTS_UTIL_ALLOCATED_H
#define TESTS_UTIL_ALLOCATED_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
size_t __sanitizer_get_current_allocated_bytes(void); /* GCC has no header of it */

static inline size_t allocated_bytes(void)
{
    return __sanitizer_get_current_allocated_bytes();
}
#else
#include <malloc.h>

static inline size_t allocated_bytes(void)
{
    const struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}
#endif

#endif
