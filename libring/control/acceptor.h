/* SPDX-License-Identifier: Apache-2.0
 *
 * acceptor: accepts connections on a listener, and admits only peers that prove membership.
 * Strangers occupy at most ACCEPTOR_PENDING sockets, each for a few seconds. When all these places
 * or all descriptors of the process are in use, it evicts peers whose hello does not show the key,
 * so that strangers cannot keep the members out. All functions run under the lock.
 */
#ifndef RING_CONTROL_ACCEPTOR_H
#define RING_CONTROL_ACCEPTOR_H

#include "control_thread.h"
#include "handshake.h"

enum { ACCEPTOR_PENDING = 64 };

struct acceptor;

/** A peer that has connected and has not yet proved its membership. */
typedef struct pending_peer {
    control_source source;
    struct acceptor *acceptor;
    handshake handshake;
    net_address from;
} pending_peer;

typedef struct acceptor {
    control_source source; /* the listener */
    const handshake_terms *terms;
    /** Decides about a member that has proved itself. RING_OK accepts the connection, RING_ERR_PEER
     *  refuses it for now, RING_ERR_ABORTED forever. NULL: all are accepted. */
    ring_status (*wants)(struct acceptor *a, const handshake_hello *hello);
    /** Gets the connection @p fd of an accepted member, whose handshake was @p h; the callee owns
     *  @p fd. */
    void (*admit)(struct acceptor *a, int fd, const handshake *h);
    /** Reports RING_ERR_CONFIG: a member cannot take part; or RING_ERR_SYSTEM: no descriptor is
     *  free, and there is no stranger to evict. fail_text() has the reason. */
    void (*refuse)(struct acceptor *a, ring_status status);
    void *context;
    pending_peer *pending[ACCEPTOR_PENDING]; /* oldest first */
    size_t count;
    size_t room;           /* the limit of pending peers: lower after descriptors have run out */
    double resume_at;      /* no accept() before that time, since one has failed */
    double warned;         /* time of the last logged refusal, 0: never */
    struct acceptor *next; /* in the list of this process */
} acceptor;

/** Listens on the bound socket @p fd, which it owns from now on. @p like has the client, terms,
 *  callbacks and context. */
ring_status acceptor_open(acceptor *a, const acceptor *like, int fd);
/** Evicts expired peers and accepts waiting ones. @return the time of the next call. */
double acceptor_tick(acceptor *a, double now);
/** Closes all pending peers and the listener, including its copies in other processes. */
void acceptor_close(acceptor *a);

/** Evicts a stranger from some acceptor of this process, to free a descriptor.
 *  @return false if there is no stranger. */
bool acceptor_evict_any(void);

#endif
