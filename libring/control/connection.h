/* SPDX-License-Identifier: Apache-2.0
 *
 * connection: exchanges messages of a fixed size with one rank and never blocks. The next message
 * is composed when the socket can take it, from counters of the messages that were sent, so a
 * connection needs no queue, however slow its peer is.
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
    bool edge;           /* of the tree; otherwise the connection of a joining rank and rank 0 */
    bool send_closed;    /* nothing more can be sent, but messages may still arrive */
    bool has_card;       /* at rank 0: the card of the peer has arrived */
    bool distrusted;     /* a message was not genuine, and all later ones are dropped */
    bool no_message_yet; /* the peer dialed and has sent nothing: it may close without being lost */
    double heard, beat;  /* time of the last received bytes; time of the next heartbeat */

    /* Progress of what this rank has sent over the connection, and the peer's replies. */
    bool announced_card, announced_seated, announced_terms;
    bool gives_cards; /* cards are being sent */
    int announced_cards;
    int announced_ready, announced_go, announced_leavers;
    int announced[2]; /* notes of each bulletin */
    int confirmed;    /* notes of the lasting bulletin that the peer has sent, so knows */
    bool bypassed;
    bool announced_goodbye, left; /* left: the peer said goodbye, or CONTROL_SEATED */
    bool announced_moved, moved;  /* moved: the peer no longer needs this leaving rank */

    control_keys keys;
    uint64_t messages_in, messages_out; /* complete messages */
    control_sealed in, out;
    size_t got, sent; /* bytes read into `in`; bytes sent of `out`, all if it is idle */
    struct connection *next;
} connection;

/** Takes over @p fd, on which the handshake @p h has succeeded.
 *  @return NULL if there is no memory or @p fd cannot be watched; @p fd is closed then. */
connection *connection_new(struct membership *m, int fd, const handshake *h, bool edge);
/** Makes the connection an edge of the tree. */
void connection_join_tree(connection *c);
/** Frees a connection that is closed and in no list. */
void connection_free(connection *c);
/** Reads all bytes that have arrived, and closes the connection at its end. The member's
 *  control_dispatch gets each message, and the end. */
void connection_read(connection *c);
/** Sends the messages that the member's control_dispatch composes, until the socket is full. */
void connection_write(connection *c);
static inline bool connection_is_open(const connection *c)
{
    return c->source.fd >= 0;
}
/** @return true while a message has been sent in part. */
bool connection_is_busy(const connection *c);
/** Closes the sending direction, so that the peer reads all messages up to the end. */
void connection_shut(connection *c);

#endif
