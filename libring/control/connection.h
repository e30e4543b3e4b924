/* SPDX-License-Identifier: Apache-2.0
 *
 * connection: fixed-size messages to and from one rank, never blocking. The next message is
 * composed from counters of the sent ones, so no queue is needed, however slow the other side is.
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
    bool edge;           /* of the tree; else a connection of joining, to or from rank 0 */
    bool send_closed;    /* nothing more can be sent; reading gives the reason */
    bool has_card;       /* rank 0: the card of this rank is here                              */
    bool distrusted;     /* a message was not genuine: later ones are dropped */
    bool no_message_yet; /* the peer dialed, and has sent nothing yet: it may close without being
                   lost */
    double heard, beat;  /* when the peer was heard last; when the next beat is due */

    /* Announced over it, and heard. */
    bool announced_card, announced_seated, announced_terms;
    bool gives_cards;
    int announced_cards;
    int announced_ready, announced_go, announced_leavers;
    int announced[2], answers; /* of each bulletin; notes of the lasting one heard */
    bool bypassed;
    bool announced_goodbye, left; /* left: the peer said goodbye, or that it is seated elsewhere */
    bool announced_moved, moved;  /* moved: it needs this rank, which leaves, no more */

    control_keys keys;
    uint64_t messages_in, messages_out; /* whole ones */
    control_sealed in, out;
    size_t got, sent; /* bytes of `in` read; of `out`, its size: none */
    struct connection *next;
} connection;

/** Takes over @p fd, on which @p h has succeeded. NULL: no memory, or it cannot be watched; @p fd
 *  is closed then. */
connection *connection_new(struct membership *m, int fd, const handshake *h, bool edge);
/** Makes it an edge of the tree. */
void connection_join_tree(connection *c);
/** To be called when it is closed and in no list. */
void connection_free(connection *c);
/** Reads what has arrived, and closes it at its end. Messages, and that it ends, go up by the
 *  member's table (control_dispatch). */
void connection_read(connection *c);
/** Sends messages that come by that table, as far as the kernel takes them. */
void connection_write(connection *c);
static inline bool connection_is_open(const connection *c)
{
    return c->source.fd >= 0;
}
/** @return true while a message is partly sent. */
bool connection_is_busy(const connection *c);
/** Ends sending; the peer may close without losing earlier messages. */
void connection_shut(connection *c);

#endif
