/* SPDX-License-Identifier: Apache-2.0
 *
 * lines: implements a ring of cache lines in memory that one producer and one consumer share, as
 * threads or processes. A frame is a header line followed by the contiguous lines of its payload;
 * one store to the header's `stamp` word publishes all of them. So a message that fits into the
 * header costs one cache line.
 *
 * Places of frames. The consumer expects the next header right after the previous frame. The stamp
 * word there is zero until that header is published: the producer zeroes it before it publishes the
 * previous frame, so that old payload never looks like a header. To place the next frame elsewhere,
 * the producer writes a *skip* into the expected place: a header that contains the frame's line
 * number. There are four reasons for a skip:
 *   - The next frame does not fit before the end of the ring. The skip leads back to line 0.
 *   - The next frame is short, and the consumer has consumed all frames, which the producer checks
 *     every LINES_NEAR lines. The skip leads back to line 0, so short messages use only a few KiB
 *     of the caches, and unneeded pages are never committed.
 *   - The next frame is long, the consumer has consumed all frames, and the previous long frame
 *     ended at a higher line. The skip leads forward to that end. Long frames thus use the whole
 *     ring, because overwriting lines that the consumer has just read would take half of the time
 *     of a 64 KiB message.
 *   - The producer has skipped back, the consumer has not followed yet, and the next frame does not
 *     fit before the consumer's line. The skip leads forward to the lines after the skip back,
 *     which would otherwise stay unused.
 *
 * Invariant: frame number n (from 0, modulo 2^31) has the stamp 2n + 1, and so has a skip to it.
 * The consumer may read the frame's lines until `taken` has passed them; all other lines belong to
 * the producer.
 *
 * Sleeping. A side that is about to sleep (the sleeper) sets its flag, and then reads once more the
 * word that it waits for (a stamp word, `taken`, or `released`). The peer (the provider) stores
 * that word, and then reads the flag. The stores are only release stores, so the provider's read
 * may overtake its store. Therefore the sleeper, between setting the flag and reading the word,
 * makes every thread of both processes execute a memory barrier (membarrier). A provider that
 * executes the barrier before its store will read the flag as set; if it executes the barrier after
 * its store, the sleeper will read the new word. No wake-up is lost, and a side that does not sleep
 * executes no barrier of its own.
 *
 * If the kernel has no such barrier, or under ThreadSanitizer, which does not understand it, the
 * ring is `strict`: all four accesses are sequentially consistent. One of the two stores is then
 * first in their single order, and the side that stores second reads the first store. Both sides
 * agree on whether they are strict. The provider clears the flag, so that one sleep costs one byte
 * on the socket (the bell).
 *
 * A side does not trust words that its peer writes: they never lead outside the ring.
 */
#ifndef RING_LINES_H
#define RING_LINES_H

#include "lines_copy.h"
#include "transport.h"

#include <stdatomic.h>

enum {
    /* More lines than a core's private caches hold, so that the consumer's core has evicted a line
     * before it is overwritten. With half as many, 256 KiB messages take a third longer. */
    LINES = 24576,
    /* The size of the rings of a process that has so many rings that they fill the caches anyway.
     * Eleven whole segments fit, or TRANSPORT_WINDOW + 1 of them after the latest long frame. */
    LINES_OF_MANY = LINES / 2,
    LINES_MANY = 16, /* this many rings of a process have LINES lines, and later ones fewer */
    LINES_NEAR = 64  /* lines of the longest short frame. Short frames to a consumer that keeps up
                        use at most twice as many lines of the ring */
};

typedef struct line {
    _Alignas(RING_CACHE_LINE) _Atomic uint32_t stamp;
    unsigned char rest[RING_CACHE_LINE - sizeof(uint32_t)];
} line;

/* The memory that both sides share. Each word has one writer, except a flag, which one side sets
 * and the other clears. Words that are written often have cache lines of their own. */
typedef struct lines_ring {
    /* The consumer's position: the number of skips that it has followed, times 2^32, plus the line
     * after the frame that it consumed last. The producer loads it when it needs room. */
    _Alignas(2 * RING_CACHE_LINE) _Atomic uint64_t taken;
    /* Number of messages whose memory the consumer has released. Loaded by the producer. */
    _Alignas(2 * RING_CACHE_LINE) _Atomic uint64_t released;
    /* Set by the consumer before it sleeps, cleared by the producer. */
    _Alignas(2 * RING_CACHE_LINE) _Atomic uint32_t consumer_sleeps;
    /* Set by the producer before it sleeps, cleared by the consumer. */
    _Atomic uint32_t producer_sleeps;
    /* Each written once, by the producer. */
    _Alignas(2 * RING_CACHE_LINE) _Atomic uint32_t ended; /* 1: it will publish no more frames */
    _Atomic uint32_t maps; /* LINES_MAPPED, LINES_NOT_MAPPED, or 0 until that is known */
    _Alignas(2 * RING_CACHE_LINE) line line[LINES];
} lines_ring;

_Static_assert(sizeof(line) == sizeof(transport_frame), "a header fills one line");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
               "words shared by processes need lock-free atomics");

/** @return the bytes of a ring with @p lines lines. A macro, so that constants can use it. */
#define lines_bytes(lines) (offsetof(lines_ring, line) + (size_t)(lines) * sizeof(line))

/** Values of lines_ring.maps: whether the producer has mapped the consumer's heap. */
enum { LINES_MAPPED = 1, LINES_NOT_MAPPED };

/** The producer's private state. */
typedef struct lines_producer {
    lines_ring *ring;
    bool strict;
    uint32_t lines;     /* number of lines of the ring that the producer uses                 */
    uint32_t stamp;     /* stamp of the next frame                                            */
    uint32_t line;      /* where the consumer expects the next header                         */
    uint32_t end;       /* lines [line, end) were free when `taken` was last read             */
    uint32_t skips;     /* number of published skips                                          */
    uint32_t over;      /* the line after the latest skip, if it led back; else LINES         */
    uint32_t far;       /* the line after the latest long frame                               */
    uint32_t since;     /* lines filled since `taken` was read                                */
    uint32_t at, limit; /* set by lines_room(): the next frame's place, and the next `end`    */
    int file;           /* a descriptor, LINES_PLAIN or LINES_MAPPING; see lines_produce()    */
    size_t committed;   /* bytes of the ring whose pages are committed                        */
    lines_copier copier;
} lines_producer;

/** The consumer's private state. */
typedef struct lines_consumer {
    lines_ring *ring;
    bool strict;
    uint32_t lines;       /* number of lines in the ring              */
    uint32_t stamp, line; /* of the oldest unconsumed frame           */
    uint32_t skips;       /* number of skips that have been followed  */
} lines_consumer;

/** @return the number of lines of a frame with @p bytes of payload after its header. */
static inline uint32_t lines_of(size_t bytes)
{
    return 1 + (uint32_t)((bytes + RING_CACHE_LINE - 1) / RING_CACHE_LINE);
}

/** Prepares memory for a ring; writes only the bytes that must be zero. */
void lines_clear(lines_ring *ring);

/** Values for a ring whose pages are not committed through a file. */
enum { LINES_PLAIN = -1, LINES_MAPPING = -2 };

/** Starts a producer for @p ring, which is clear, and commits the first lines.
 *  @param file  the file that @p ring maps from offset 0; LINES_PLAIN: it is plain memory. */
ring_status lines_produce(lines_producer *p, lines_ring *ring, int file);

/** Makes the producer commit later pages through the mapping instead of the file. @return false if
 *  the kernel cannot do that; then the file must stay open. */
bool lines_leave_file(lines_producer *p);

/** Limits the ring to @p most lines. Must be called before the first frame. */
void lines_use(lines_producer *p, uint32_t most);

/** Removes the ring from the count of the process's rings (LINES_MANY). Must also be called if
 *  lines_produce() has failed; does nothing if @p p is all zero. */
void lines_produce_no_more(lines_producer *p);

/** @return true if there is room for a frame with @p bytes of payload after its header. */
bool lines_fit(lines_producer *p, size_t bytes);

/** Finds room for the next frame and commits its memory. RING_IN_PROGRESS: the ring is full. */
ring_status lines_room(lines_producer *p, size_t bytes);

/** @return the place of the payload in the room that lines_room() found last. */
static inline void *lines_payload(const lines_producer *p)
{
    return &p->ring->line[p->at + 1];
}

/** Writes the frame into the room that lines_room() found last, and publishes it.
 *  @param payload  copied, unless it is lines_payload().
 *  @return true if the consumer sleeps and must be woken. */
bool lines_publish(lines_producer *p, const transport_frame *frame, const void *payload);

/** Starts a consumer for a ring of LINES lines; if the ring is smaller, the caller lowers
 *  c->lines. */
void lines_consume_from(lines_consumer *c, lines_ring *ring);

/** @return the word that holds c->stamp once the oldest frame is published. */
static inline const _Atomic uint32_t *lines_news(const lines_consumer *c)
{
    return &c->ring->line[c->line].stamp;
}

/** Copies the header of the oldest frame to @p frame, following a skip if there is one.
 *  @return RING_IN_PROGRESS: there is no frame. RING_ERR_PEER, without fail(): the bytes in the
 *          expected place are not a frame. */
ring_status lines_oldest(lines_consumer *c, transport_frame *frame);

/** Frees the lines of the oldest frame, which has @p lines. @return true if the producer sleeps and
 *  must be woken. */
bool lines_consume(lines_consumer *c, uint32_t lines);

/** Announces that the memory of the first @p messages messages has been released. @return true if
 *  the producer sleeps and must be woken. */
bool lines_release(lines_consumer *c, uint64_t messages);

/** Announces in both rings that this end will publish no more frames. @return true if the peer
 *  sleeps on either ring and must be woken. */
bool lines_end(lines_producer *p, lines_consumer *c);

#endif
