/* SPDX-License-Identifier: Apache-2.0
 * Maps a file into memory, so that pages of the kernel's page cache are the only buffers. madvise()
 * brings pages in before they are accessed, because it returns an error if the disk fails, whereas
 * an access would kill the process. */
#include "mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "errors.h"

#ifndef MADV_POPULATE_WRITE /* since Linux 5.14 */
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

enum { PATH_BYTES = 512 };

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t round_down(size_t bytes)
{
    return bytes / page_bytes() * page_bytes();
}

size_t mapped_file_room(size_t bytes)
{
    return round_down(bytes + page_bytes() - 1);
}

/* ---- The file ------------------------------------------------------------------------------ */

static ring_status no_room(const char *key, const char *folder, size_t bytes, int error)
{
    struct statvfs stat;
    const size_t room = statvfs(folder, &stat) == 0 ? (size_t)stat.f_bavail * (size_t)stat.f_frsize
                                                    : 0;
    return train_fail(
        RING_ERR_SYSTEM,
        "%s: cannot allocate %zu bytes in %s, where %zu are free: %s; free some space "
        "or name another folder",
        key, bytes, folder, room, strerror(error));
}

static ring_status make_file(mapped_file *file, const char *key, const char *folder)
{
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/ringtrain-XXXXXX", folder) >= (int)sizeof path)
        return train_fail(RING_ERR_CONFIG, "%s: the path is too long: %.200s…", key, folder);
    file->fd = mkstemp(path);
    if (file->fd < 0)
        return train_fail(RING_ERR_CONFIG,
                          "%s: cannot create a file of %zu bytes in %s: %s; name a folder that is "
                          "writable",
                          key, file->bytes, folder, strerror(errno));
    file->open = true;
    unlink(path);
    return RING_OK;
}

ring_status mapped_file_open(mapped_file *file, const char *key, const char *folder, size_t bytes)
{
    *file = (mapped_file){.bytes = bytes};
    if (bytes == 0)
        return RING_OK;
    RING_TRY(make_file(file, key, folder));
    if (bytes > INT64_MAX)
        return no_room(key, folder, bytes, EFBIG);
    const int error = posix_fallocate(file->fd, 0, (off_t)bytes);
    if (error != 0)
        return no_room(key, folder, bytes, error);
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
    if (data == MAP_FAILED)
        return no_room(key, folder, bytes, errno);
    file->data = data;
    return RING_OK;
}

void mapped_file_close(mapped_file *file)
{
    if (file->data != NULL)
        munmap(file->data, file->bytes);
    if (file->open)
        close(file->fd);
    *file = (mapped_file){0};
}

mapped_array mapped_file_take(mapped_file *file, size_t bytes, size_t window, size_t depth)
{
    mapped_array array = {.file = file,
                          .data = file->data + file->taken,
                          .bytes = bytes,
                          .window = mapped_file_room(window),
                          .depth = depth};
    file->taken += mapped_file_room(bytes);
    return array;
}

/* ---- The walk ------------------------------------------------------------------------------ */

static ring_status disk_failed(const char *doing)
{
    return train_fail(
        RING_ERR_SYSTEM,
        "%s the file of offloaded states failed: %s; check that the disk of nvme_path "
        "works and has free space",
        doing, strerror(errno));
}

/* pread() is coherent with the mapping, since both use the page cache. */
ring_status mapped_file_read(const mapped_file *file, void *to, const void *from, size_t bytes)
{
    unsigned char *at = to;
    off_t offset = (const unsigned char *)from - file->data;
    for (size_t left = bytes; left > 0;) {
        const ssize_t got = pread(file->fd, at, left, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got == 0 ? EIO : errno;
            return disk_failed("reading from");
        }
        at += got;
        offset += got;
        left -= (size_t)got;
    }
    return RING_OK;
}

/* Brings bytes @p begin to @p end - 1 of @p data into memory, in whole pages. Kernels before 5.14
 * reject the advice with EINVAL; then pages are read when they are accessed. */
static ring_status populate(unsigned char *data, size_t begin, size_t end, int advice)
{
    const size_t from = round_down(begin);
    if (madvise(data + from, mapped_file_room(end - from), advice) != 0 && errno != EINVAL)
        return disk_failed("reading from");
    return RING_OK;
}

ring_status mapped_file_fetch(const mapped_file *file, const void *at, size_t bytes, bool to_change)
{
    const uintptr_t data = (uintptr_t)file->data, from = (uintptr_t)at;
    if (file->data == NULL || bytes == 0 || from < data || from - data >= file->bytes)
        return RING_OK;
    const size_t begin = from - data;
    return populate(file->data, begin, begin + bytes,
                    to_change ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

/* A range of whole pages of the file, in bytes. */
typedef struct file_range {
    off_t begin, bytes;
} file_range;

/* @return window @p number of the array; 0 bytes after the last one. */
static file_range window_at(const mapped_array *array, size_t number)
{
    const size_t begin = number * array->window, end = begin + array->window;
    const size_t room = mapped_file_room(array->bytes);
    const size_t most = end < room ? end : room;
    return (file_range){(array->data - array->file->data) + (off_t)begin,
                        begin < most ? (off_t)(most - begin) : 0};
}

/* Unmaps the pages of the window from the process and starts writing the changed ones to the disk.
 */
static ring_status begin_write(const mapped_array *array, size_t number)
{
    const file_range at = window_at(array, number);
    if (madvise(array->file->data + at.begin, (size_t)at.bytes, MADV_DONTNEED) != 0 ||
        sync_file_range(array->file->fd, at.begin, at.bytes, SYNC_FILE_RANGE_WRITE) != 0)
        return disk_failed("writing to");
    return RING_OK;
}

/* Waits until the window is on the disk, and drops its pages from the page cache. */
static ring_status end_write(const mapped_array *array, size_t number)
{
    const file_range at = window_at(array, number);
    if (sync_file_range(array->file->fd, at.begin, at.bytes,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                            SYNC_FILE_RANGE_WAIT_AFTER) != 0)
        return disk_failed("writing to");
    posix_fadvise(array->file->fd, at.begin, at.bytes, POSIX_FADV_DONTNEED);
    return RING_OK;
}

/* Starts to write back the windows before @p number, and waits for all but the last depth of them.
 */
static ring_status leave_windows(mapped_array *array, size_t number)
{
    ring_status status = RING_OK;
    for (; array->current < number && status == RING_OK; array->current++) {
        status = begin_write(array, array->current);
        if (status == RING_OK && array->current >= array->depth)
            status = end_write(array, array->current - array->depth);
    }
    return status;
}

ring_status mapped_array_enter(mapped_array *array, size_t begin, size_t end)
{
    if (begin >= end)
        return RING_OK;
    RING_TRY(leave_windows(array, begin / array->window));
    const file_range ahead = window_at(array, (end - 1) / array->window + 1);
    if (ahead.bytes > 0)
        posix_fadvise(array->file->fd, ahead.begin, ahead.bytes, POSIX_FADV_WILLNEED);
    return populate(array->data, begin, end, MADV_POPULATE_WRITE);
}

ring_status mapped_array_leave(mapped_array *array)
{
    const size_t windows = (array->bytes + array->window - 1) / array->window;
    ring_status status = leave_windows(array, windows);
    for (size_t w = windows > array->depth ? windows - array->depth : 0;
         w < windows && status == RING_OK; w++)
        status = end_write(array, w);
    array->current = 0;
    return status;
}
