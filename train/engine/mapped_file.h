/* SPDX-License-Identifier: Apache-2.0
 *
 * mapped_file: keeps arrays in a file instead of in memory. The file has its full size from the
 * start and no name, so it disappears however the process ends. An array is mapped and traversed
 * from beginning to end in windows: while one window is computed with, the next one is read,
 * earlier ones are written back, and pages that have been written leave memory. Other code reads an
 * array as plain memory, which the kernel fills.
 */
#ifndef TRAIN_MAPPED_FILE_H
#define TRAIN_MAPPED_FILE_H

#include <ring/ring.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct mapped_file {
    bool open;
    int fd;
    unsigned char *data;
    size_t bytes, taken;
} mapped_file;

/** One array of a file. */
typedef struct mapped_array {
    const mapped_file *file; /* borrowed; NULL: none */
    unsigned char *data;
    size_t bytes, window;
    size_t depth;   /* windows that may be on their way to the disk */
    size_t current; /* number of the first window that is not done */
} mapped_array;

/** @return the bytes, in whole pages, that an array of @p bytes occupies in a file. */
size_t mapped_file_room(size_t bytes);

/** Makes a file of @p bytes zeros in @p folder. @param key the setting that requested the file, for
 *  error messages.
 *  @return RING_OK, or RING_ERR_CONFIG or RING_ERR_SYSTEM: no such folder, not writable, full.
 *  Close whatever the result. */
ring_status mapped_file_open(mapped_file *file, const char *key, const char *folder, size_t bytes);
void mapped_file_close(mapped_file *file);

/** @return the next @p bytes of the file as an array, valid until the file is closed.
 *  @param window  bytes, filled up to whole pages */
mapped_array mapped_file_take(mapped_file *file, size_t bytes, size_t window, size_t depth);

/** Copies @p bytes that are mapped at @p from without mapping their pages into the process.
 *  @return as mapped_array_enter(). */
ring_status mapped_file_read(const mapped_file *file, void *to, const void *from, size_t bytes);

/** Brings the pages of @p bytes at @p at into memory, to be read or changed soon. Memory outside
 *  the file needs no fetch. If the disk fails later, touching the memory kills the process, so
 *  fetch little at a time. @return as mapped_array_enter(). */
ring_status mapped_file_fetch(const mapped_file *file, const void *at, size_t bytes,
                              bool to_change);

/** Brings bytes @p begin to @p end - 1 into memory to be changed. Calls must move forward through
 *  the array. @return RING_OK, or RING_ERR_SYSTEM if the disk fails. */
ring_status mapped_array_enter(mapped_array *array, size_t begin, size_t end);

/** Ends the walk. When it returns, everything is on the disk and the next walk may begin.
 *  @return as mapped_array_enter(). */
ring_status mapped_array_leave(mapped_array *array);

#endif
