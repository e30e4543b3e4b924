/* SPDX-License-Identifier: Apache-2.0
 *
 * durable: writes files that are synced to the disk before they are closed, and hashes their bytes
 * while they are written. Error messages name the file.
 */
#ifndef TRAIN_DURABLE_H
#define TRAIN_DURABLE_H

#include <ring/ring.h>

typedef struct durable_file {
    const char *path; /* borrowed */
    int fd;
    uint64_t bytes;             /* written so far */
    struct XXH3_state_s *state; /* of the hash */
} durable_file;

/** Creates a new file; fails if it exists. End with durable_finish() or durable_discard(). */
ring_status durable_begin(durable_file *file, const char *path);
ring_status durable_write(durable_file *file, const void *data, size_t bytes);
/** Syncs and closes the file. @param[out] hash  of all its bytes (XXH3, 64 bits); may be NULL. */
ring_status durable_finish(durable_file *file, uint64_t *hash);
/** Closes the file without a sync, and does not remove it. */
void durable_discard(durable_file *file);

/** Creates, writes, syncs and closes a whole file. */
ring_status durable_write_all(const char *path, const void *data, size_t bytes);

/** Syncs a folder, so that new and renamed entries are on the disk. */
ring_status durable_sync_folder(const char *path);

/** @return the hash of @p bytes bytes, as durable_finish() computes it. */
uint64_t durable_hash(const void *data, size_t bytes);
/** Computes the hash and the length of a whole file. */
ring_status durable_hash_file(const char *path, uint64_t *hash, uint64_t *bytes);

#endif
