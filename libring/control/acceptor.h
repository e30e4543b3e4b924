/* SPDX-License-Identifier: Apache-2.0
 *
 * acceptor: accepts connections on a listener, and admits only peers that prove membership. A peer
 * whose handshake has not finished is pending. At most ACCEPTOR_PENDING peers are pending at a
 * time, each for a few seconds. When all these places or all descriptors of the process are in use,
 * the acceptor evicts peers whose hello does not show that they have the key, so that strangers
 * cannot keep the members out. All functions run under the lock.
 */
#ifndef RING_CONTROL_ACCEPTOR_H
#define RING_CONTROL_ACCEPTOR_H

#include "control_thread.h"
#include "handshake.h"

enum { ACCEPTOR_PENDING = 64 };

struct acceptor;

/** A peer that has connected, and has not yet proved its membership. */
typedef struct pending_peer {
    control_source source;
    struct acceptor *acceptor;
    handshake handshake;
    net_address from; /* the peer's address, for the log */
} pending_peer;

typedef struct acceptor {
    control_source source; /* the listener */
    const handshake_terms *terms;
    /** Decides whether to accept a connection of a member that has proved its membership. RING_OK
     *  accepts it, RING_IN_PROGRESS also, without the welcome, which admit() may send later,
     *  RING_ERR_PEER refuses it now, and RING_ERR_ABORTED refuses it for good. NULL: all are
     *  accepted. */
    ring_status (*wants)(struct acceptor *a, const handshake *h);
    /** Takes over the connection @p fd of an accepted member, whose handshake was @p h. */
    void (*admit)(struct acceptor *a, int fd, const handshake *h);
    /** Reports a failure, whose reason is fail_text(). RING_ERR_CONFIG: a member cannot work with
     *  this rank, e.g. because of its version. RING_ERR_SYSTEM: no descriptor is free, and there is
     *  no stranger to evict. */
    void (*refuse)(struct acceptor *a, ring_status status);
    void *context;
    pending_peer *pending[ACCEPTOR_PENDING]; /* oldest first */
    size_t count;
    size_t room;           /* the limit of `count`; it is lowered when descriptors run out */
    double resume_at;      /* the time of the next accept() after one that has failed */
    double warned;         /* the time of the latest warning of a refusal; 0: there was none */
    struct acceptor *next; /* in the list of this process */
} acceptor;

/** Listens on the bound socket @p fd, which the acceptor owns after this, even if the call fails.
 *  @param like  has the client, terms, callbacks and context, which are copied. */
ring_status acceptor_open(acceptor *a, const acceptor *like, int fd);
/** Removes pending peers that have expired, and accepts peers that wait. @return the time at which
 * it must be called again. */
double acceptor_tick(acceptor *a, double now);
/** Closes the connections of all pending peers, and the listener, whose copies in other processes
 *  stop listening, too. */
void acceptor_close(acceptor *a);

/** Evicts a pending peer from one of the acceptors of this process, to free a descriptor.
 *  @return false if there is no pending peer. */
bool acceptor_evict_any(void);

#endif
