/* SPDX-License-Identifier: Apache-2.0
 *
 * lines: implements a ring of cache lines in memory that one producer and one consumer share, as
 * threads or processes. A frame is a header line followed by the lines of its payload, contiguous;
 * one store to the header's `stamp` word publishes all of them. So a message that fits into the
 * header costs one cache line.
 *
 * Places of frames. The consumer expects the next header right after the last frame. The stamp word
 * there is zero until that header is published: the producer zeroes it before it publishes the
 * frame before it, so that old payload never looks like a header. If the next frame is elsewhere,
 * the producer publishes it by a *skip*: a header in the expected place that contains the line of
 * the frame. A skip leads back to line 0 at the end of the ring. For a short message it also does
 * so when the consumer has taken everything, which the producer checks every LINES_NEAR lines: so
 * short messages use only a few KiB of the caches, and unneeded pages are never committed. Long
 * messages go all the way around, and continue from the end of the latest long one if short ones
 * were sent in between: it is expensive to overwrite lines that the other side has just read, half
 * of the time of a 64 KiB message. If the producer has gone back and the consumer has not followed
 * yet, a skip may also lead forward to the free lines after the skip back, so that going back
 * wastes no lines.
 *
 * Invariant: frame number n (from 0, modulo 2^31) has the stamp 2n + 1, and so has a skip to it.
 * The consumer may read the frame's lines until `taken` has passed them; all other lines belong to
 * the producer.
 *
 * Sleeping. A side that is about to sleep (the sleeper) sets its flag, and then reads once more the
 * word that it waits for (a stamp word, `taken`, or `released`). The other side (the provider)
 * stores that word, and then reads the flag. The stores are only release stores, so the provider's
 * read may overtake its store. Therefore the sleeper, between setting the flag and reading the
 * word, makes every thread of both processes execute a memory barrier (membarrier). If a provider
 * executes it before its store, its later read sees the flag; if after its store, the sleeper's
 * later read sees the word. No wake-up is lost, and a side that is awake pays nothing. If the
 * kernel has no such barrier, or ThreadSanitizer is used, which does not understand it, the ring is
 * `strict`: all four accesses are sequentially consistent, so one of the two stores is first in
 * their single order, and the other side, which reads after its own store, sees it. Both sides
 * agree on whether they are strict. The provider clears the flag, so one sleep costs one byte on
 * the socket (the bell).
 *
 * Words that the other side writes are not trusted: they never lead outside the ring.
 */
#ifndef RING_LINES_H
#define RING_LINES_H

#include "lines_copy.h"
#include "transport.h"

#include <stdatomic.h>

enum {
    /* More lines than a core's private caches hold, so that the consumer's core has evicted a line
     * before it is overwritten; with half as many, 256 KiB messages take a third longer. */
    LINES = 24576,
    /* For rings of a process that has so many of them that they fill the caches anyway. Eleven
     * whole segments fit, or a window after the latest long frame. */
    LINES_OF_MANY = LINES / 2,
    LINES_MANY = 16, /* up to this many rings of a process use all LINES                          */
    LINES_NEAR = 64  /* short messages to a consumer that keeps up use at most twice this */
};

typedef struct line {
    _Alignas(RING_CACHE_LINE) _Atomic uint32_t stamp;
    unsigned char rest[RING_CACHE_LINE - sizeof(uint32_t)];
} line;

/* The memory that both sides share. Each word has one writer (a flag: one side sets it, the other
 * clears it), and words that are written often are apart from those that are read often. */
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
    _Alignas(2 * RING_CACHE_LINE) _Atomic uint32_t ended; /* it will publish no more frames */
    _Atomic uint32_t maps; /* whether it has mapped the consumer's heap; 0: not known yet */
    _Alignas(2 * RING_CACHE_LINE) line line[LINES];
} lines_ring;

_Static_assert(sizeof(line) == sizeof(transport_frame), "a header is a line");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
               "words shared by processes need lock-free atomics");

/** @return the bytes of a ring with @p lines lines. A macro, because constants need it. */
#define lines_bytes(lines) (offsetof(lines_ring, line) + (size_t)(lines) * sizeof(line))

enum { LINES_MAPPED = 1, LINES_NOT_MAPPED };

/** The producer's end. */
typedef struct lines_producer {
    lines_ring *ring;
    bool strict;
    uint32_t lines;     /* number of lines of the ring that the producer uses                 */
    uint32_t stamp;     /* of the next frame                                                  */
    uint32_t line;      /* where the consumer expects the next header                         */
    uint32_t end;       /* the lines from `line` to here are free, as far as known            */
    uint32_t skips;     /* number of published skips                                          */
    uint32_t over;      /* the line after the latest skip, if it led back; else LINES         */
    uint32_t far;       /* the line after the latest long frame                               */
    uint32_t since;     /* lines filled since `taken` was read                                */
    uint32_t at, limit; /* found by lines_room(): the frame's place, and `end` after it       */
    int file;           /* see lines_produce()                                                */
    size_t committed;   /* bytes of the ring                                                  */
    lines_copier copier;
} lines_producer;

/** The consumer's end. */
typedef struct lines_consumer {
    lines_ring *ring;
    bool strict;
    uint32_t lines;              /* number in the ring  */
    uint32_t stamp, line, skips; /* of the oldest frame */
} lines_consumer;

/** @return the lines of a frame whose payload after the header has @p bytes. */
static inline uint32_t lines_of(size_t bytes)
{
    return 1 + (uint32_t)((bytes + RING_CACHE_LINE - 1) / RING_CACHE_LINE);
}

/** Prepares memory for a ring; touches only bytes that must be zero. */
void lines_clear(lines_ring *ring);

/** Values for a ring whose pages are not committed through a file. */
enum { LINES_PLAIN = -1, LINES_MAPPING = -2 };

/** Starts a producer for @p ring, which is clear, and commits the first lines.
 *  @param file  the file that @p ring maps from offset 0; LINES_PLAIN: it is plain memory. */
ring_status lines_produce(lines_producer *p, lines_ring *ring, int file);

/** Makes the producer commit later pages through the mapping. @return false if the kernel cannot do
 *  that; then the file must stay open. */
bool lines_leave_file(lines_producer *p);

/** Limits the ring to @p most lines; only before the first frame. */
void lines_use(lines_producer *p, uint32_t most);

/** Stops counting the ring among those of the process. @p p may be zero, or may have failed to
 *  start. */
void lines_produce_no_more(lines_producer *p);

/** @return true if there is room for a frame whose payload after the header has @p bytes. */
bool lines_fit(lines_producer *p, size_t bytes);

/** Finds room for the next frame and commits its memory. RING_IN_PROGRESS: the ring is full. */
ring_status lines_room(lines_producer *p, size_t bytes);

/** @return the place of the payload in the room that was found last. */
static inline void *lines_payload(const lines_producer *p)
{
    return &p->ring->line[p->at + 1];
}

/** Fills the room that was found last and publishes the frame, which must fit into it.
 *  @param payload  may be lines_payload(): then nothing is copied.
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

/** Copies the header of the oldest frame, and follows a skip to it. RING_IN_PROGRESS: there is no
 *  frame; RING_ERR_PEER, without fail(): the bytes there are not a frame. */
ring_status lines_oldest(lines_consumer *c, transport_frame *frame);

/** Frees the oldest frame's lines. @return true if the producer sleeps and must be woken. */
bool lines_consume(lines_consumer *c, uint32_t lines);

/** Stores `released`. @return true if the producer sleeps and must be woken. */
bool lines_release(lines_consumer *c, uint64_t messages);

/** Announces in both rings that this end will publish no more frames. @return true if the peer
 *  sleeps on either and must be woken. */
bool lines_end(lines_producer *p, lines_consumer *c);

#endif
