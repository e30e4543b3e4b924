/* SPDX-License-Identifier: Apache-2.0
 *
 * durable: writes files whose bytes are all hashed as they are written and are on the disk when the
 * file is closed. Error messages name the file.
 */
#ifndef TRAIN_DURABLE_H
#define TRAIN_DURABLE_H

#include <ring/ring.h>

typedef struct durable_file {
    const char *path; /* borrowed */
    int fd;
    uint64_t bytes;
    struct XXH3_state_s *state;
} durable_file;

/** Begins a new file. End with durable_finish() or durable_discard(). */
ring_status durable_begin(durable_file *file, const char *path);
ring_status durable_write(durable_file *file, const void *data, size_t bytes);
/** Syncs and closes it. @param[out] hash  of all its bytes (XXH3, 64 bits); may be NULL. */
ring_status durable_finish(durable_file *file, uint64_t *hash);
/** Closes it; what is there stays. */
void durable_discard(durable_file *file);

/** A whole new file at once. */
ring_status durable_write_all(const char *path, const void *data, size_t bytes);

/** Syncs a folder: what is in it by name. */
ring_status durable_sync_folder(const char *path);

/** @return the hash of @p bytes bytes, as durable_finish() has it. */
uint64_t durable_hash(const void *data, size_t bytes);
/** The same of a whole file, and its length. */
ring_status durable_hash_file(const char *path, uint64_t *hash, uint64_t *bytes);

#endif
