/* SPDX-License-Identifier: Apache-2.0
 *
 * greeting: what both ends of a link over lines say first, so that a socket that joins the
 * wrong ranks, lanes, transports or versions is an error at once. Of fixed size. */
#ifndef RING_LINES_GREETING_H
#define RING_LINES_GREETING_H

#include "transport.h"

typedef struct lines_greeting {
    char transport[8];
    uint32_t byte_order, lines;
    int32_t from, to;
    uint32_t lane;
    uint32_t barriers; /* it has joined membarrier: not compared */
    uint64_t offer;    /* the transport's own: not compared      */
} lines_greeting;

/** What this end says; joins membarrier if it can. */
lines_greeting lines_greeting_make(const transport *t, const transport_peer *peer,
                                   uint64_t offer);
/** Is it what the other end has to say? */
ring_status lines_greeting_check(const lines_greeting *theirs, const transport *t,
                                 const transport_peer *peer);

/** Puts "opening the shm link to rank 3: " before the error text. */
ring_status lines_open_failed(ring_status status, const transport *t,
                              const transport_peer *peer);

#endif
