/* SPDX-License-Identifier: Apache-2.0
 *
 * acceptor: a listener that lets in only who proves membership. Strangers cost at most
 * ACCEPTOR_PENDING sockets, each for a few seconds; when all places are taken, or this
 * process's descriptors, those whose hello does not show the key have to go, so nobody without it
 * can keep the members out. The lock is held in all of it.
 */
#ifndef RING_CONTROL_ACCEPTOR_H
#define RING_CONTROL_ACCEPTOR_H

#include "control_thread.h"
#include "handshake.h"

enum { ACCEPTOR_PENDING = 64 };

struct acceptor;

/** Who has connected and not proved itself yet. */
typedef struct pending_peer {
    control_source source;
    struct acceptor *acceptor;
    handshake handshake;
    net_address from;
} pending_peer;

typedef struct acceptor {
    control_source source; /* the listener */
    const handshake_terms *terms;
    /** A member that proved itself: RING_OK, RING_ERR_PEER: this connection is not wanted now, or
     *  RING_ERR_ABORTED: never. NULL: any is. */
    ring_status (*wants)(struct acceptor *a, const handshake_hello *hello);
    /** A member that was welcomed, by @p h; @p fd is the callee's. */
    void (*admit)(struct acceptor *a, int fd, const handshake *h);
    /** RING_ERR_CONFIG: a member cannot take part; RING_ERR_SYSTEM: no descriptor is free, and no
     *  stranger has one. fail_text() says more. */
    void (*refuse)(struct acceptor *a, ring_status status);
    void *context;
    pending_peer *pending[ACCEPTOR_PENDING]; /* oldest first */
    size_t count;
    size_t room;           /* pending ones at most: fewer since descriptors ran out */
    double rest;           /* accept() failed: not again before that moment */
    double warned;         /* when a refusal was logged last, 0: never */
    struct acceptor *next; /* of this process's */
} acceptor;

/** Listens and accepts at @p fd, which is bound (owned); @p like has client, terms, callbacks and
 * context. */
ring_status acceptor_open(acceptor *a, const acceptor *like, int fd);
/** Sends away who has had its time, takes in who waits. @return when it is wanted again. */
double acceptor_tick(acceptor *a, double now);
/** Closes it, copies of the listener in other processes too, and who is not proven. */
void acceptor_close(acceptor *a);

/** Sends a stranger away from some acceptor of this process, for a descriptor.
 *  @return false if there is none. */
bool acceptor_evict_any(void);

#endif
