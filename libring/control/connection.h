/* SPDX-License-Identifier: Apache-2.0
 *
 * connection: sends and receives the control messages of one peer, and never blocks. The next
 * message is composed when the socket accepts more bytes. It follows from the state of this rank
 * and from counters of the messages that were sent, so a connection needs no queue, however slow
 * its peer is.
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
    int peer;            /* its rank in the membership */
    bool edge;           /* an edge of the tree; else it connects rank 0 and a joining rank */
    bool send_closed;    /* nothing more can be sent, but messages may still arrive */
    bool has_card;       /* at rank 0: the card of the peer has arrived */
    bool distrusted;     /* the MAC of a message was wrong, so all later messages are dropped */
    bool no_message_yet; /* the peer dialed but sent nothing; its close does not count as a loss */
    double heard, beat;  /* the time of the last received bytes; the time of the next heartbeat */

    /* The messages that this rank has sent over the connection: `announced_X` is true, or a number,
     * for the messages that have been composed. */
    bool announced_card, announced_seated, announced_terms;
    bool gives_cards;                  /* cards are being sent */
    int announced_cards;               /* the number of cards */
    int announced_ready, announced_go; /* the latest barrier */
    int announced_leavers;             /* the number of ranks that have left */
    int announced[2];                  /* the number of notes of each bulletin */
    bool announced_goodbye, announced_moved;

    /* The peer's messages. */
    int confirmed; /* notes of the lasting bulletin that the peer has sent, which confirms them */
    bool bypassed; /* the peer did not confirm notes in time */
    bool left;     /* the peer has sent CONTROL_GOODBYE or CONTROL_SEATED */
    bool moved;    /* the peer has sent CONTROL_MOVED: it no longer needs this leaving rank */

    control_keys keys;
    uint64_t messages_in, messages_out; /* complete messages */
    control_sealed in, out;
    size_t got;  /* bytes of `in` that have arrived */
    size_t sent; /* bytes of `out` that were sent; all of them if no message is in flight */
    struct connection *next;
} connection;

/** Makes a connection of the socket @p fd, on which the handshake @p h has succeeded. The
 * membership owns the connection. @param edge  see connection_join_tree().
 *  @return NULL if there is no memory or @p fd cannot be watched; @p fd is closed then. */
connection *connection_new(struct membership *m, int fd, const handshake *h, bool edge);
/** Makes the connection an edge of the tree, so that all kinds of messages may use it. */
void connection_join_tree(connection *c);
/** Frees a connection that is closed and in no list. */
void connection_free(connection *c);
/** Reads all bytes that have arrived, and passes each message to the membership's control_dispatch.
 *  Closes the connection if the peer has closed it, after control_dispatch.on_close(). */
void connection_read(connection *c);
/** Sends the messages that the membership's control_dispatch composes, until there are no more or
 * the socket is full. */
void connection_write(connection *c);
static inline bool connection_is_open(const connection *c)
{
    return c->source.fd >= 0;
}
/** @return true while a message has been sent in part. */
bool connection_is_busy(const connection *c);
/** Closes the sending direction, so that the peer reads all messages and then the end. */
void connection_shut(connection *c);

#endif
