/* SPDX-License-Identifier: Apache-2.0
 *
 * lines_copy: copies the payload of long frames into lines, usually with plain stores. A plain
 * store must first fetch the line if the consumer's core has read it last, and between cores that
 * share no cache this dominates: 2.5 GB/s. Stores that bypass the caches (streaming stores) fetch
 * no line and reach 30 GB/s there, but between cores that share a cache they take twice as long as
 * plain ones.
 *
 * So some copies are timed. After a few slow ones in a row, the producer streams its payloads; from
 * time to time it times a plain copy again, because threads may move to other cores.
 */
#ifndef RING_LINES_COPY_H
#define RING_LINES_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Shorter payloads use plain stores: the core continues before they are written. */
enum { LINES_STREAM_LEAST = 4096 };

/** How a producer copies at present, and its timings; initially zero. */
typedef struct lines_copier {
    bool streams;   /* copies bypass the caches                                   */
    uint32_t slow;  /* number of slow plain copies in a row                       */
    uint32_t count; /* copies since one was last timed, or last considered for it */
    double tried;   /* when a plain copy was last timed; only valid if `streams`  */
} lines_copier;

/** Copies into lines that will be published next. @param to  aligned to a line. */
void lines_copy(lines_copier *c, void *to, const void *from, size_t bytes);

/** Records the time of a plain copy, and decides how the next ones are done. @param now  the
 *  current time of clock_now(). */
void lines_copier_note(lines_copier *c, size_t bytes, double seconds, double now);

#endif
