/* SPDX-License-Identifier: Apache-2.0
 * Writes files with unbuffered write() calls, because the data are large and already in memory, so
 * buffers would only add copies. */
#include "durable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "errors.h"

enum { BLOCK_BYTES = 1 << 20 };

static ring_status path_fail(const char *path)
{
    return train_fail(RING_ERR_SYSTEM, "%s: %s", path, strerror(errno));
}

ring_status durable_begin(durable_file *file, const char *path)
{
    *file = (durable_file){.path = path, .fd = -1, .state = XXH3_createState()};
    if (file->state == NULL)
        return train_fail(RING_ERR_MEMORY, "%s: no memory to write it", path);
    XXH3_64bits_reset(file->state);
    file->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return file->fd >= 0 ? RING_OK : path_fail(path);
}

ring_status durable_write(durable_file *file, const void *data, size_t bytes)
{
    XXH3_64bits_update(file->state, data, bytes);
    file->bytes += bytes;
    for (const char *at = data; bytes > 0;) {
        const ssize_t written = write(file->fd, at, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return path_fail(file->path);
        at += written;
        bytes -= (size_t)written;
    }
    return RING_OK;
}

ring_status durable_finish(durable_file *file, uint64_t *hash)
{
    ring_status status = fsync(file->fd) == 0 ? RING_OK : path_fail(file->path);
    if (hash != NULL)
        *hash = XXH3_64bits_digest(file->state);
    if (close(file->fd) != 0 && status == RING_OK)
        status = path_fail(file->path);
    file->fd = -1;
    durable_discard(file);
    return status;
}

void durable_discard(durable_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    XXH3_freeState(file->state);
    file->state = NULL;
}

ring_status durable_write_all(const char *path, const void *data, size_t bytes)
{
    durable_file file;
    ring_status status = durable_begin(&file, path);
    if (status == RING_OK)
        status = durable_write(&file, data, bytes);
    if (status == RING_OK)
        return durable_finish(&file, NULL);
    durable_discard(&file);
    return status;
}

ring_status durable_sync_folder(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return path_fail(path);
    /* File systems that cannot sync a folder return EINVAL; they do not need the sync. */
    const ring_status status = fsync(fd) == 0 || errno == EINVAL ? RING_OK : path_fail(path);
    close(fd);
    return status;
}

uint64_t durable_hash(const void *data, size_t bytes)
{
    return XXH3_64bits(data, bytes);
}

/* Hashes the rest of an open file. @param block  a buffer of BLOCK_BYTES */
static ring_status hash_open(const char *path, int fd, XXH3_state_t *state, char *block,
                             uint64_t *bytes)
{
    for (*bytes = 0;;) {
        const ssize_t got = read(fd, block, BLOCK_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return path_fail(path);
        if (got == 0)
            return RING_OK;
        XXH3_64bits_update(state, block, (size_t)got);
        *bytes += (uint64_t)got;
    }
}

ring_status durable_hash_file(const char *path, uint64_t *hash, uint64_t *bytes)
{
    char *block;
    RING_TRY(train_alloc((void **)&block, BLOCK_BYTES, "reading a file"));
    XXH3_state_t *state = XXH3_createState();
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ring_status status = fd >= 0 ? RING_OK : path_fail(path);
    if (status == RING_OK && state == NULL)
        status = train_fail(RING_ERR_MEMORY, "%s: no memory to read it", path);
    if (status == RING_OK) {
        XXH3_64bits_reset(state);
        status = hash_open(path, fd, state, block, bytes);
        *hash = XXH3_64bits_digest(state);
    }
    if (fd >= 0)
        close(fd);
    XXH3_freeState(state);
    free(block);
    return status;
}
