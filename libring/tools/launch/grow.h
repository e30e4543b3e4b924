/* SPDX-License-Identifier: Apache-2.0
 *
 * grow: growable texts, lists and byte buffers of the launcher. These calls never fail: when memory
 * runs out, they print a message and end the program.
 */
#ifndef LAUNCH_GROW_H
#define LAUNCH_GROW_H

#include "base.h"

#include <sys/types.h>

/** Reports that memory has run out, and ends the program with status 3. */
_Noreturn void memory_failed(void);
/** Calls realloc() for @p count items of @p size bytes. */
void *memory_grow(void *old, size_t count, size_t size);
/** @return new memory for @p count items of @p size bytes, all zero. */
void *memory_zeroed(size_t count, size_t size);
/** Makes room for one more item in a list of @p count items. The room doubles, so that adding n
 *  items one by one costs O(n). */
void *memory_more(void *old, size_t count, size_t size);
/** @return a copy of the first @p length bytes of a text, with an end. The caller frees it. */
char *memory_text(const char *text, size_t length);

/** A list of texts. Once it has an item, items[count] is NULL, as execve() needs it. */
typedef struct texts {
    char **items;
    size_t count;
} texts;

/** Adds a text. */
void texts_add(texts *list, const char *format, ...) RING_PRINTF(2, 3);
void texts_free(texts *list);
/** Adds "NAME=VALUE" to a list of variables, in place of an older value of NAME. */
void texts_put(texts *list, const char *entry);
/** @return the value of the variable @p name; NULL if the list does not have it. */
const char *texts_get(const texts *list, const char *name);

/** A queue of bytes: read from one descriptor, and not yet processed or written to another. */
typedef struct bytes {
    char *data;
    size_t start, end, room; /* data[start … end) is in the queue */
} bytes;

/** @return the number of bytes in the queue. */
static inline size_t bytes_count(const bytes *b)
{
    return b->end - b->start;
}
/** @return the first byte in the queue. */
static inline const char *bytes_head(const bytes *b)
{
    return b->data + b->start;
}
/** Adds bytes at the end. */
void bytes_add(bytes *b, const void *data, size_t count);
/** Removes @p count bytes from the head. */
void bytes_drop(bytes *b, size_t count);
/** Reads at most @p most available bytes from a descriptor. @return their number; 0 at the end or
 *  after an error; -1 if no bytes are available now. */
ssize_t read_ready(int fd, void *data, size_t most);
/** Reads in the same way, and adds the bytes at the end of @p b. */
ssize_t bytes_read(bytes *b, int fd, size_t most);
void bytes_free(bytes *b);

#endif
