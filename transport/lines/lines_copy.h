/* SPDX-License-Identifier: Apache-2.0
 *
 * lines_copy: copies the payload of frames into lines, usually with plain stores. A plain store
 * must first fetch the line if the consumer's core was the last to read it. Between cores that
 * share no cache, this fetch limits plain copies to 2.5 GB/s. Stores that bypass the caches
 * (streaming stores) fetch no line and reach 30 GB/s there, but between cores that share a cache
 * they take twice as long as plain stores.
 *
 * So the producer times some of its copies. After a few slow ones in a row it streams payloads.
 * From time to time it times a plain copy again, because threads may move to other cores.
 */
#ifndef RING_LINES_COPY_H
#define RING_LINES_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes. Shorter payloads use plain stores, which the core buffers while it continues. */
enum { LINES_STREAM_LEAST = 4096 };

/** How a producer copies at present, and its timings; initially zero. */
typedef struct lines_copier {
    bool streams;   /* copies bypass the caches                                   */
    uint32_t slow;  /* number of slow plain copies in a row                       */
    uint32_t count; /* copies since the last timing, or since the last check whether one is due */
    double tried;   /* when a plain copy was last timed; only valid if `streams`  */
} lines_copier;

/** Copies into lines that the caller then publishes. @param to  aligned to a line. */
void lines_copy(lines_copier *c, void *to, const void *from, size_t bytes);

/** Records that a plain copy of @p bytes took @p seconds, and decides whether the next copies
 *  stream. @param bytes  at least LINES_STREAM_LEAST. @param now  the current clock_now(). */
void lines_copier_note(lines_copier *c, size_t bytes, double seconds, double now);

#endif
