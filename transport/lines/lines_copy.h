/* SPDX-License-Identifier: Apache-2.0
 *
 * lines_copy: copying the payload of long frames into lines. Mostly by plain stores. But a line
 * that the consumer's core has read last must be fetched before it can be written, and between
 * cores that share no cache that takes longer than all else: 2.5 GB/s. Stores past the caches fetch
 * no line, and reach 30 GB/s there, but between cores that share a cache they take twice as long as
 * plain ones.
 *
 * So copies are timed now and then. After a few slow ones in a row, this producer's payloads go
 * past the caches; from time to time one does not, and is timed. Threads and machines move, so
 * either may become right at any time.
 */
#ifndef RING_LINES_COPY_H
#define RING_LINES_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Shorter payloads are stored plainly: the core goes on before they are written. */
enum { LINES_STREAM_LEAST = 4096 };

/** A producer's knowledge of its copies; zero at first. */
typedef struct lines_copier {
    bool streams;   /* past the caches                                            */
    uint32_t slow;  /* plain copies in a row that were slow                       */
    uint32_t count; /* copies since the latest one that was timed, or was refused it */
    double tried;   /* when a plain copy was timed last; only while it streams    */
} lines_copier;

/** Copies to lines that will be published. @param to  aligned to a line. */
void lines_copy(lines_copier *c, void *to, const void *from, size_t bytes);

/** Notes the time of a plain copy, and decides how to go on. @param now  the clock. */
void lines_copier_note(lines_copier *c, size_t bytes, double seconds, double now);

#endif
