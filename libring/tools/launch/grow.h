/* SPDX-License-Identifier: Apache-2.0
 *
 * grow: growable texts, lists and byte buffers of the launcher. A launcher without memory can only
 * report it and stop: these calls never fail.
 */
#ifndef LAUNCH_GROW_H
#define LAUNCH_GROW_H

#include "base.h"

#include <sys/types.h>

/** Ends the program: there is no memory. */
_Noreturn void memory_failed(void);
/** realloc() of count * size bytes that ends the program when there is no memory. */
void *memory_grow(void *old, size_t count, size_t size);
/** The same for new memory, all zero. */
void *memory_zeroed(size_t count, size_t size);
/** Makes room for one item after @p count; cheap when called for one item after another. */
void *memory_more(void *old, size_t count, size_t size);
/** A copy of @p length bytes of a text, ended. */
char *memory_text(const char *text, size_t length);

/** A list of texts, always followed by NULL: fits execve(). */
typedef struct texts {
    char **items;
    size_t count;
} texts;

void texts_add(texts *list, const char *format, ...) RING_PRINTF(2, 3);
void texts_free(texts *list);
/** Variables: adds "NAME=VALUE", replacing an older one. */
void texts_put(texts *list, const char *entry);
/** @return the value of @p name, or NULL. */
const char *texts_get(const texts *list, const char *name);

/** Bytes waiting between a reader and a writer. */
typedef struct bytes {
    char *data;
    size_t start, end, room; /* data[start … end) waits */
} bytes;

static inline size_t bytes_count(const bytes *b)
{
    return b->end - b->start;
}
static inline const char *bytes_head(const bytes *b)
{
    return b->data + b->start;
}
void bytes_add(bytes *b, const void *data, size_t count);
/** Drops @p count bytes from the head. */
void bytes_drop(bytes *b, size_t count);
/** Reads available bytes, at most @p most. @return their number; 0: the end, or an error; -1: no
 *  bytes are available now. */
ssize_t read_ready(int fd, void *data, size_t most);
/** The same, to the end of @p b. */
ssize_t bytes_read(bytes *b, int fd, size_t most);
void bytes_free(bytes *b);

#endif
