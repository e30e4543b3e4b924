/* SPDX-License-Identifier: Apache-2.0
 *
 * short_memory: the program's allocations ask may_allocate(), which the test defines; the library
 * finds these in place of libc's. */
#ifndef TESTS_FAULT_SHORT_MEMORY_H
#define TESTS_FAULT_SHORT_MEMORY_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define IN_PLACE_OF_LIBC __attribute__((visibility("default")))

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t align, size_t bytes);

/* @return false, and ENOMEM: this one fails. */
static bool may_allocate(void);

IN_PLACE_OF_LIBC void *malloc(size_t bytes)
{
    return may_allocate() ? __libc_malloc(bytes) : NULL;
}

IN_PLACE_OF_LIBC void *calloc(size_t count, size_t bytes)
{
    return may_allocate() ? __libc_calloc(count, bytes) : NULL;
}

IN_PLACE_OF_LIBC void *realloc(void *old, size_t bytes)
{
    return may_allocate() ? __libc_realloc(old, bytes) : NULL;
}

IN_PLACE_OF_LIBC void *aligned_alloc(size_t align, size_t bytes)
{
    return may_allocate() ? __libc_memalign(align, bytes) : NULL;
}

IN_PLACE_OF_LIBC int posix_memalign(void **out, size_t align, size_t bytes)
{
    *out = may_allocate() ? __libc_memalign(align, bytes) : NULL;
    return *out != NULL ? 0 : ENOMEM;
}

#endif
