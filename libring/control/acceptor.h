/* SPDX-License-Identifier: Apache-2.0
 *
 * acceptor: a listener that admits only peers that prove membership. Strangers cost at most
 * ACCEPTOR_PENDING sockets, each for a few seconds; when all places are taken, or this process's
 * descriptors, peers whose hello does not show the key are evicted, so peers without it cannot keep
 * the members out. The lock is held in all of it.
 */
#ifndef RING_CONTROL_ACCEPTOR_H
#define RING_CONTROL_ACCEPTOR_H

#include "control_thread.h"
#include "handshake.h"

enum { ACCEPTOR_PENDING = 64 };

struct acceptor;

/** A peer that has connected and not proved itself yet. */
typedef struct pending_peer {
    control_source source;
    struct acceptor *acceptor;
    handshake handshake;
    net_address from;
} pending_peer;

typedef struct acceptor {
    control_source source; /* the listener */
    const handshake_terms *terms;
    /** Asked for a member that proved itself: RING_OK, RING_ERR_PEER: this connection is not wanted
     *  now, or RING_ERR_ABORTED: never. NULL: any is wanted. */
    ring_status (*wants)(struct acceptor *a, const handshake_hello *hello);
    /** Called for a member that was welcomed, by @p h; @p fd is the callee's. */
    void (*admit)(struct acceptor *a, int fd, const handshake *h);
    /** RING_ERR_CONFIG: a member cannot take part; RING_ERR_SYSTEM: no descriptor is free, and no
     *  stranger has one. fail_text() says more. */
    void (*refuse)(struct acceptor *a, ring_status status);
    void *context;
    pending_peer *pending[ACCEPTOR_PENDING]; /* oldest first */
    size_t count;
    size_t room;           /* the most pending peers: fewer since descriptors ran out */
    double rest;           /* accept() failed: not again before that moment */
    double warned;         /* when a refusal was logged last, 0: never */
    struct acceptor *next; /* in the list of this process */
} acceptor;

/** Listens and accepts at @p fd, which is bound (owned); @p like has client, terms, callbacks and
 *  context. */
ring_status acceptor_open(acceptor *a, const acceptor *like, int fd);
/** Evicts expired peers, accepts waiting ones. @return when it is to be called again. */
double acceptor_tick(acceptor *a, double now);
/** Closes the listener, its copies in other processes too, and all pending peers. */
void acceptor_close(acceptor *a);

/** Evicts a stranger from some acceptor of this process, to free a descriptor.
 *  @return false if there is none. */
bool acceptor_evict_any(void);

#endif
