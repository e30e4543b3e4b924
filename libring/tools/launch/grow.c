/* SPDX-License-Identifier: Apache-2.0
 * Implements texts and buffers that grow; each function ends the program when memory runs out. */
#include "grow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void memory_failed(void)
{
    fprintf(stderr, "ringrun: out of memory\n");
    exit(3);
}

void *memory_grow(void *old, size_t count, size_t size)
{
    size_t total;
    void *grown = mul_size(count, size, &total) ? realloc(old, total > 0 ? total : 1) : NULL;
    if (grown == NULL)
        memory_failed();
    return grown;
}

void *memory_zeroed(size_t count, size_t size)
{
    void *made = memory_grow(NULL, count, size);
    memset(made, 0, count * size);
    return made;
}

/* The room is always a power of two, so the list is full when the count is a power of two. */
void *memory_more(void *old, size_t count, size_t size)
{
    return (count & (count - 1)) == 0 ? memory_grow(old, max_size(2 * count, 1), size) : old;
}

char *memory_text(const char *text, size_t length)
{
    char *copy = memory_grow(NULL, length + 1, 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

void texts_add(texts *list, const char *format, ...)
{
    va_list args;
    list->items = memory_more(list->items, list->count + 1, sizeof *list->items);
    va_start(args, format);
    if (vasprintf(&list->items[list->count++], format, args) < 0)
        memory_failed();
    va_end(args);
    list->items[list->count] = NULL;
}

void texts_free(texts *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (texts){0};
}

/* @return the entry "NAME=VALUE" of a name of @p length characters, or NULL. */
static char **find_name(const texts *list, const char *name, size_t length)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strncmp(list->items[i], name, length) == 0 && list->items[i][length] == '=')
            return &list->items[i];
    }
    return NULL;
}

void texts_put(texts *list, const char *entry)
{
    char **old = find_name(list, entry, strcspn(entry, "="));
    if (old == NULL) {
        texts_add(list, "%s", entry);
        return;
    }
    free(*old);
    *old = memory_text(entry, strlen(entry));
}

const char *texts_get(const texts *list, const char *name)
{
    char **at = find_name(list, name, strlen(name));
    return at != NULL ? *at + strlen(name) + 1 : NULL;
}

/* Makes room for `more` bytes after the end: moves the waiting bytes to the beginning, or
 * allocates. */
static void bytes_reserve(bytes *b, size_t more)
{
    if (b->start > 0 && (b->start == b->end || b->room - b->end < more)) {
        if (b->start < b->end)
            memmove(b->data, b->data + b->start, b->end - b->start);
        b->end -= b->start;
        b->start = 0;
    }
    if (b->room - b->end >= more)
        return;
    b->room = max_size(2 * b->room, b->end + more);
    b->data = memory_grow(b->data, b->room, 1);
}

void bytes_add(bytes *b, const void *data, size_t count)
{
    if (count == 0)
        return;
    bytes_reserve(b, count);
    memcpy(b->data + b->end, data, count);
    b->end += count;
}

void bytes_drop(bytes *b, size_t count)
{
    b->start += count;
    if (b->start == b->end)
        b->start = b->end = 0;
}

ssize_t read_ready(int fd, void *data, size_t most)
{
    const ssize_t got = read(fd, data, most);
    if (got >= 0)
        return got;
    return errno == EAGAIN || errno == EINTR ? -1 : 0;
}

ssize_t bytes_read(bytes *b, int fd, size_t most)
{
    bytes_reserve(b, most);
    const ssize_t got = read_ready(fd, b->data + b->end, most);
    if (got > 0)
        b->end += (size_t)got;
    return got;
}

void bytes_free(bytes *b)
{
    free(b->data);
    *b = (bytes){0};
}
