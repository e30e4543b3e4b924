/* SPDX-License-Identifier: Apache-2.0
 *
 * greeting: what both ends of a link over slots say first, so that a socket that joins the
 * wrong ranks, lanes, transports or versions is an error at once. Of fixed size. */
#ifndef RING_SLOTS_GREETING_H
#define RING_SLOTS_GREETING_H

#include "transport.h"

typedef struct slots_greeting {
    char transport[8];
    uint32_t byte_order, slots;
    uint64_t slot_bytes;
    int32_t from, to;
    uint32_t lane, zero;
    uint64_t offer; /* the transport's own, not compared */
} slots_greeting;

/** What this end says. */
slots_greeting slots_greeting_make(const transport *t, const transport_peer *peer,
                                   uint64_t offer);
/** Is it what the other end has to say? */
ring_status slots_greeting_check(const slots_greeting *theirs, const transport *t,
                                 const transport_peer *peer);

/** Puts "opening the shm link to rank 3: " before the error text. */
ring_status slots_open_failed(ring_status status, const transport *t,
                              const transport_peer *peer);

#endif
