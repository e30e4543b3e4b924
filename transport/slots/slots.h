/* SPDX-License-Identifier: Apache-2.0
 *
 * slots: a ring of slots in memory that one producer and one consumer both see, be they
 * threads or processes. A slot is a frame's header and its payload; the header's `turn` word
 * publishes both with one store, so a small message costs two cache lines.
 *
 * Invariant: frame number n (from 1, modulo 2^32) lies in slot (n - 1) % SLOTS, and its turn
 * word is n while the consumer may read it. All else in the slot belongs to the producer
 * before that store and to the consumer from then until `consumed` reaches n.
 *
 * Sleeping. Whoever is about to sleep stores its sleeps flag and then looks once more for
 * what it waits for (a turn word, or `consumed`). Whoever provides that stores it first and
 * then looks at the flag. All four accesses are sequentially consistent, so in their single
 * order one of the two stores is first and the other side's look, which comes after its own
 * store, sees it: no wake-up is lost. The provider takes the flag down, so that one
 * sleep costs one ring of the bell.
 *
 * What is read from the other side is not trusted: it never leads outside the ring.
 */
#ifndef RING_SLOTS_H
#define RING_SLOTS_H

#include "transport.h"

#include <stdatomic.h>

/* Measured: 8 carry 64 KiB payloads a fifth faster than 4, and still stay in the caches. */
enum { SLOTS = 8 };

typedef struct slot {
    transport_frame frame; /* .turn is atomic: producer stores, consumer loads; seq_cst */
    unsigned char payload[TRANSPORT_SEGMENT];
    unsigned char gap[RING_CACHE_LINE]; /* header and first payload line: one aligned pair */
} slot;

/* What both sides map. Each word has one writer (the flags: one that sets, one that clears),
 * and words that are written often lie apart from those that are read often. */
typedef struct slots_ring {
    /* Frames consumed. Consumer stores, seq_cst; producer loads when the ring looks full. */
    _Alignas(2 * RING_CACHE_LINE) _Atomic uint32_t consumed;
    /* The consumer sets it before it sleeps, the producer takes it down; seq_cst. */
    _Alignas(RING_CACHE_LINE) _Atomic uint32_t consumer_sleeps;
    /* The producer sets it before it sleeps, the consumer takes it down; seq_cst. */
    _Atomic uint32_t producer_sleeps;
    _Alignas(2 * RING_CACHE_LINE) slot slot[SLOTS];
} slots_ring;

_Static_assert(sizeof(slot) % (2 * RING_CACHE_LINE) == 0, "slots start on a pair of lines");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "words shared by processes need lock-free atomics");

/** The producer's end. */
typedef struct slots_producer {
    slots_ring *ring;
    uint32_t produced; /* frames published                                          */
    uint32_t consumed; /* as last seen                                               */
    int file;          /* whose pages are committed before first use; -1: plain memory */
    size_t committed[SLOTS]; /* bytes of each slot that are                          */
} slots_producer;

/** The consumer's end. */
typedef struct slots_consumer {
    slots_ring *ring;
    uint32_t consumed;
} slots_consumer;

/** @return payload bytes that travel with @p frame. */
static inline uint64_t slots_carried(const transport_frame *frame)
{
    return frame->flags == 0 ? frame->bytes : 0;
}

/** Starts as producer of @p ring, whose memory is zero, and commits its headers.
 *  @param file  the file that @p ring maps from offset 0, -1 if it is plain memory. */
ring_status slots_produce(slots_producer *p, slots_ring *ring, int file);

/** @return true if the next frame has a slot. */
bool slots_room(slots_producer *p);

/** The payload of the next slot, ready for @p bytes of payload; only if there is room.
 *  NULL if memory is short, after fail(). */
void *slots_payload(slots_producer *p, size_t bytes);

/** Fills the next slot and publishes it; only after slots_payload().
 *  @param payload  may be what slots_payload() gave: then nothing is copied.
 *  @return true if the consumer sleeps and must be woken. */
bool slots_publish(slots_producer *p, const transport_frame *frame, const void *payload);

void slots_consume_from(slots_consumer *c, slots_ring *ring);

/** @return the oldest slot that is published and not consumed, or NULL. */
const slot *slots_oldest(const slots_consumer *c);

/** Gives the oldest slot back. @return true if the producer sleeps and must be woken. */
bool slots_consume(slots_consumer *c);

/** @return bytes of memory committed for the ring. */
size_t slots_memory(const slots_producer *p);

#endif
