/* SPDX-License-Identifier: Apache-2.0
 *
 * connection: fixed-size messages to and from one rank, never blocking. What is to be said follows
 * from what was told already, so nothing queues, whatever the other side does.
 */
#ifndef RING_CONTROL_CONNECTION_H
#define RING_CONTROL_CONNECTION_H

#include "control_message.h"
#include "control_thread.h"
#include "handshake.h"

struct membership;

typedef struct connection {
    control_source source;
    struct membership *member;
    int peer;
    bool edge;          /* of the tree; else it leads to or from rank 0, for joining only     */
    bool deaf;          /* nothing more can be said; reading tells why                        */
    bool came;          /* rank 0: the card of this rank is here                              */
    bool doubted;       /* a message was not genuine: what comes is not believed any more     */
    bool tacit;         /* the peer dialed, and has said nothing yet: it may have thought better */
    double heard, beat; /* when the peer was heard last; when the next beat is due      */

    /* What was told over it, and heard. */
    bool told_card, told_seated, told_terms;
    bool gives_cards;
    int told_cards;
    int told_ready, told_go, told_leavers;
    int told[2], answers; /* of each bulletin; notes of the lasting one heard        */
    bool bypassed;
    bool told_goodbye, left; /* left: the peer said goodbye, or that it is seated elsewhere */

    control_keys keys;
    uint64_t messages_in, messages_out; /* whole ones */
    control_sealed in, out;
    size_t got, sent; /* bytes of `in` read; of `out`, its size: none */
    struct connection *next;
} connection;

/** Takes over @p fd, on which @p h has succeeded. NULL: no memory, or it cannot be watched; it is
 *  closed then. */
connection *connection_new(struct membership *m, int fd, const handshake *h, bool edge);
/** It is an edge of the tree from now on. */
void connection_join_tree(connection *c);
/** Of one that is closed and in no list. */
void connection_free(connection *c);
/** Reads what is here; each whole message goes to membership_hear(). Closes it at its end, after
 *  membership_lose(). */
void connection_read(connection *c);
/** Says what membership_speak() gives, as far as the peer takes it. */
void connection_write(connection *c);
static inline bool connection_is_open(const connection *c)
{
    return c->source.fd >= 0;
}
/** A message is half way to the kernel. */
bool connection_is_busy(const connection *c);
/** Nothing more will be said; the peer may close without losing what was. */
void connection_shut(connection *c);

#endif
