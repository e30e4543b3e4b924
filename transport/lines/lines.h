/* SPDX-License-Identifier: Apache-2.0
 *
 * lines: a ring of cache lines in memory that one producer and one consumer share, as threads or
 * processes. A frame is its header line and the lines of its payload behind it, contiguous; the
 * header's `stamp` word publishes them with one store. So a message that fits the header costs one
 * cache line.
 *
 * Places of frames. The consumer looks for the next header behind the last frame. Its stamp word is
 * zero until it is published: the producer zeroes it before it publishes the frame before, so that
 * no old payload looks like a header. A frame at another place is published by a *skip*, a header
 * in its stead with the line of the frame. Skips lead back to line 0 from the end of the ring; and
 * for a short message also when the consumer has taken everything, which is checked every
 * LINES_NEAR lines: so short messages keep to a few KiB of the caches, and unneeded pages are never
 * committed. Long ones go all the way round, and on from the end of the latest one if short ones
 * came between: lines that the other side has just read are costly to overwrite, half of a 64 KiB
 * message's time. And a producer that came back while its consumer has not leads it over the skip
 * to the lines behind it, which are free: no line is lost to coming back.
 *
 * Invariant: frame number n (from 0, modulo 2^31) has the stamp 2n + 1, and so has the skip to it.
 * The consumer may read from there until `taken` is past it; all other lines are the producer's.
 *
 * Sleeping. A side that is about to sleep sets its sleeps flag, and then reads once more the word
 * it waits for (a stamp word, `taken`, `released`). The other side (the provider) stores that word,
 * and then reads the flag. Stores are release, which lets the provider's read overtake its store;
 * so between flag and read the sleeper has every thread of both processes pass a memory barrier
 * (membarrier). If a provider passes it before its store, it reads the flag after it and sees it;
 * if after its store, the sleeper, who reads after it, sees that. No wake-up is lost, and a side
 * that is awake pays nothing. Where the kernel cannot do that, or ThreadSanitizer could not know
 * it, the ring is `strict`: then all four accesses are sequentially consistent, so in their single
 * order one of the two stores is first and the other side's read, which comes after its own store,
 * sees it. Both sides are strict or none. The provider clears the flag, so that one sleep costs one
 * byte on the socket (the bell).
 *
 * Words of the other side are not trusted: they never lead outside the ring.
 */
#ifndef RING_LINES_H
#define RING_LINES_H

#include "lines_copy.h"
#include "transport.h"

#include <stdatomic.h>

enum {
    /* More than a core's own caches hold, so that the consumer's has evicted a line before it is
     * written again; with half of them 256 KiB take a third longer. */
    LINES = 24576,
    /* Used in a process with so many rings that they fill the caches anyway: eleven whole segments
     * fit, or a window behind the latest long frame. */
    LINES_OF_MANY = LINES / 2,
    LINES_MANY = 16, /* rings of a process that has no more use all their lines                   */
    LINES_NEAR = 64  /* short messages to a consumer that keeps up need twice these at most */
};

typedef struct line {
    _Alignas(RING_CACHE_LINE) _Atomic uint32_t stamp;
    unsigned char rest[RING_CACHE_LINE - sizeof(uint32_t)];
} line;

/* Shared memory of both sides. Each word has one writer (the flags: one that sets, one that
 * clears), and words that are written often lie apart from those that are read often. */
typedef struct lines_ring {
    /* The consumer's position: skips it has followed, times 2^32, and the line behind the frame
     * that it took last. Loaded by the producer when needed. */
    _Alignas(2 * RING_CACHE_LINE) _Atomic uint64_t taken;
    /* Messages whose memory the consumer has released. Loaded by the producer. */
    _Alignas(2 * RING_CACHE_LINE) _Atomic uint64_t released;
    /* Set by the consumer before it sleeps, cleared by the producer. */
    _Alignas(2 * RING_CACHE_LINE) _Atomic uint32_t consumer_sleeps;
    /* Set by the producer before it sleeps, cleared by the consumer. */
    _Atomic uint32_t producer_sleeps;
    /* Written by the producer once each. */
    _Alignas(2 * RING_CACHE_LINE) _Atomic uint32_t ended; /* it publishes no more */
    _Atomic uint32_t maps; /* LINES_MAPPED: it has mapped the consumer's heap; 0: not yet known */
    _Alignas(2 * RING_CACHE_LINE) line line[LINES];
} lines_ring;

_Static_assert(sizeof(line) == sizeof(transport_frame), "a header is a line");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
               "words shared by processes need lock-free atomics");

/** @return bytes of a ring of so many lines. A macro: it is a constant. */
#define lines_bytes(lines) (offsetof(lines_ring, line) + (size_t)(lines) * sizeof(line))

enum { LINES_MAPPED = 1, LINES_NOT_MAPPED };

/** The producer's end. */
typedef struct lines_producer {
    lines_ring *ring;
    bool strict;
    uint32_t lines;     /* of the ring that it uses                                           */
    uint32_t stamp;     /* of the next frame                                                  */
    uint32_t line;      /* where the consumer looks for it                                    */
    uint32_t end;       /* lines from there to here are free, as last seen                    */
    uint32_t skips;     /* published                                                          */
    uint32_t over;      /* the line behind the latest skip, if that led back; LINES: it did not */
    uint32_t far;       /* behind the latest long frame */
    uint32_t since;     /* lines filled since `taken` was read */
    uint32_t at, limit; /* of the latest lines_room(): the frame's place, and its `end` */
    int file;           /* see lines_produce()                                                */
    size_t committed;   /* bytes of the ring                                                  */
    lines_copier copier;
} lines_producer;

/** The consumer's end. */
typedef struct lines_consumer {
    lines_ring *ring;
    bool strict;
    uint32_t lines;              /* that the ring has   */
    uint32_t stamp, line, skips; /* of the oldest frame */
} lines_consumer;

/** @return lines of a frame with so many bytes behind its header. */
static inline uint32_t lines_of(size_t bytes)
{
    return 1 + (uint32_t)((bytes + RING_CACHE_LINE - 1) / RING_CACHE_LINE);
}

/** Readies memory for a ring; it touches only bytes that must be zero. */
void lines_clear(lines_ring *ring);

/** Where the pages of a ring come from, in place of a file. */
enum { LINES_PLAIN = -1, LINES_MAPPING = -2 };

/** Starts as producer of @p ring, which was cleared, and commits its first lines.
 *  @param file  the file that @p ring maps from offset 0; LINES_PLAIN: it is plain memory. */
ring_status lines_produce(lines_producer *p, lines_ring *ring, int file);

/** Has later pages committed through the mapping. @return false: the kernel cannot, and the file
 *  must stay open. */
bool lines_leave_file(lines_producer *p);

/** Limits its ring to @p most lines; before the first frame. */
void lines_use(lines_producer *p, uint32_t most);

/** Counts its ring out of those of the process. It may have failed to start, or be zero. */
void lines_produce_no_more(lines_producer *p);

/** @return true if a frame with @p bytes behind its header would find room. */
bool lines_fit(lines_producer *p, size_t bytes);

/** Finds room for the next frame and readies its memory. RING_IN_PROGRESS: full. */
ring_status lines_room(lines_producer *p, size_t bytes);

/** @return the place of the payload in the room found last. */
static inline void *lines_payload(const lines_producer *p)
{
    return &p->ring->line[p->at + 1];
}

/** Fills the room found last and publishes it; no more bytes than were asked for.
 *  @param payload  may be lines_payload(): then nothing is copied.
 *  @return true if the consumer sleeps and must be woken. */
bool lines_publish(lines_producer *p, const transport_frame *frame, const void *payload);

/** A ring of all LINES; a caller with a smaller one lowers c->lines. */
void lines_consume_from(lines_consumer *c, lines_ring *ring);

/** @return the word that holds c->stamp once the oldest frame is there. */
static inline const _Atomic uint32_t *lines_news(const lines_consumer *c)
{
    return &c->ring->line[c->line].stamp;
}

/** Copies the header of the oldest frame, following a skip to it. RING_IN_PROGRESS: there is none;
 *  RING_ERR_PEER, without fail(): the bytes there are no frame. */
ring_status lines_oldest(lines_consumer *c, transport_frame *frame);

/** Frees the oldest frame's lines. @return true if the producer sleeps and must be woken. */
bool lines_consume(lines_consumer *c, uint32_t lines);

/** Stores `released`. @return true if the producer sleeps and must be woken. */
bool lines_release(lines_consumer *c, uint64_t messages);

/** Ends a link of two rings: no frame comes after those that were published. @return true if the
 *  peer sleeps on either and must be woken. */
bool lines_end(lines_producer *p, lines_consumer *c);

#endif
