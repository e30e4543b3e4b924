/* SPDX-License-Identifier: Apache-2.0
 *
 * mapped_file: keeps arrays in a file instead of in memory. The file has its full size from the
 * start, and it is unlinked at once, so that it disappears however the process ends. An update
 * walks over an array from beginning to end in windows: while the caller computes on one window,
 * the next one is read, earlier ones are written back, and written pages leave memory. Other code
 * reads the array through the mapping like plain memory.
 */
#ifndef TRAIN_MAPPED_FILE_H
#define TRAIN_MAPPED_FILE_H

#include <ring/ring.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct mapped_file {
    bool open; /* fd is valid */
    int fd;
    unsigned char *data; /* [bytes] the mapping; NULL: the file is not mapped */
    size_t bytes;
    size_t taken; /* bytes that mapped_file_take() has given away */
} mapped_file;

/** One array of a file. */
typedef struct mapped_array {
    const mapped_file *file; /* borrowed */
    unsigned char *data;     /* [bytes] in the mapping of the file */
    size_t bytes;
    size_t window;  /* bytes of a window, whole pages */
    size_t depth;   /* windows that may be in flight to the disk at a time */
    size_t current; /* number of the first window that the walk has not left yet */
} mapped_array;

/** @return the bytes, in whole pages, that an array of @p bytes occupies in a file. */
size_t mapped_file_room(size_t bytes);

/** Creates and maps a file of @p bytes zeros in @p folder; with 0 bytes, it creates no file.
 *  @param key  the setting that requested the file, for error messages.
 *  @return RING_OK; RING_ERR_CONFIG: the folder does not exist or is not writable; RING_ERR_SYSTEM:
 *  the disk is full. Close it whatever the result. */
ring_status mapped_file_open(mapped_file *file, const char *key, const char *folder, size_t bytes);
void mapped_file_close(mapped_file *file);

/** @return the next @p bytes of the file as an array, valid until the file is closed.
 *  @param window  bytes of a window, rounded up to whole pages
 *  @param depth  windows that may be in flight to the disk at a time */
mapped_array mapped_file_take(mapped_file *file, size_t bytes, size_t window, size_t depth);

/** Copies @p bytes that are mapped at @p from. It reads the file instead of the mapping, so that
 * the pages do not become resident in the process.
 *  @return as mapped_array_enter(). */
ring_status mapped_file_read(const mapped_file *file, void *to, const void *from, size_t bytes);

/** Brings the pages of @p bytes at @p at into memory, to be read or changed soon; does nothing if
 *  @p at is outside the file. The kernel may evict the pages again; if the disk fails then, an
 * access kills the process. So fetch little at a time. @return as mapped_array_enter(). */
ring_status mapped_file_fetch(const mapped_file *file, const void *at, size_t bytes,
                              bool to_change);

/** Brings bytes @p begin to @p end - 1 of the array into memory, to be changed, and writes back the
 *  windows before them. A walk must move forward through the array.
 *  @return RING_OK, or RING_ERR_SYSTEM if the disk fails. */
ring_status mapped_array_enter(mapped_array *array, size_t begin, size_t end);

/** Ends the walk. When it returns, everything is on the disk and the next walk may begin.
 *  @return as mapped_array_enter(). */
ring_status mapped_array_leave(mapped_array *array);

#endif
