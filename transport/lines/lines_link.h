/* SPDX-License-Identifier: Apache-2.0
 *
 * lines_link: a link that consists of two rings of lines, one per direction, and the socket over
 * which it was opened. It implements all calls of a transport except those that set up memory and
 * refer to it.
 *
 * Opening. Each end makes the ring that it sends through, sends it in a greeting, and maps the
 * peer's ring when it receives the peer's greeting; then the link is open at that end. An end that
 * has also mapped the peer's heap announces this with LINES_MAPPED; until then no frame refers to
 * that heap.
 *
 * The socket of an open link carries no data: it is a bell (bell.h), which wakes a sleeping peer
 * and shows when the peer has ended. It is not read while frames flow. All links of a pair of ranks
 * share it, so an end that closes one link announces that in its ring. Frames that a peer published
 * before it ended are still delivered; after them the link is broken.
 */
#ifndef RING_LINES_LINK_H
#define RING_LINES_LINK_H

#include "bell.h"
#include "lines.h"

#include <sys/types.h>

/** The first message of an end; the meaning of `offer` depends on the transport. */
typedef struct lines_greeting {
    char magic[8];
    uint32_t lines;    /* of a ring             */
    uint32_t barriers; /* the sender has joined membarrier */
    uint64_t offer;
    uint64_t nonce; /* random; 0: the sender shares no bell */
    uint64_t bell;  /* id of the shared bell that the sender offers; 0: it has no bell */
} lines_greeting;

typedef struct lines_link {
    transport_link head;
    int fd;     /* the socket, until the link is open  */
    bell *bell; /* made of the socket, or shared, then */
    transport_pair pair;
    uint64_t nonce;
    bell *offered; /* the bell in this end's greeting, or NULL */
    bell_waiter waiter;
    ring_status state; /* RING_IN_PROGRESS: opening, RING_OK: open, else its failure */
    char why[128];
    /** Sends this end's greeting if that has not been done, checks for the peer's greeting, and
     *  passes it to lines_link_accept(). */
    ring_status (*look)(struct lines_link *l);
    uint8_t flags; /* flags that received frames may have */
    bool greeted;  /* this end's greeting has been sent */
    bool answered; /* the peer has announced whether it has mapped our memory (lines_ring.maps) */
    lines_producer out;
    lines_consumer in;
    bool reserved;         /* reserve() has returned the room in `out`                        */
    bool refused;          /* the last frame found no room, and needs:                        */
    size_t wanted;         /* bytes                                                           */
    uint64_t notified;     /* released messages at the last arm()                             */
    bool peeked;           /* the oldest frame has been peeked, and is:                       */
    transport_frame frame; /* a copy of its header, so that checked fields cannot change      */
    unsigned quiet;        /* calls without a frame since the bell was last drained           */
    bool gone;             /* the peer has closed its end, or has ended                       */
    bool armed_in, armed_out;
} lines_link;

/** Initialises @p l, which is zero, and takes over the socket; lines_link_close() undoes it. */
void lines_link_init(lines_link *l, const transport *made_by, const transport_peer *peer,
                     ring_status (*look)(lines_link *l));
/** Announces to the peer that this end is closed, and drops the socket and the bell. The rings must
 *  still exist. */
void lines_link_close(lines_link *l);
/** @return this end's greeting. Joins membarrier if the kernel supports it. */
lines_greeting lines_link_greeting(const lines_link *l, uint64_t offer);
/** Opens the link with the peer's greeting, after this end's greeting has been sent.
 *  @param in      the ring that the peer produces.
 *  @param refers  FRAME_REF if this end has mapped the peer's memory, FRAME_STORED if the peer has
 *                 mapped ours. */
ring_status lines_link_accept(lines_link *l, const lines_greeting *theirs, lines_ring *in,
                              uint8_t refers);
/** Checks the result of recv() for the first message on a socket, which arrives as a whole.
 *  @return RING_IN_PROGRESS: it has not arrived yet. */
ring_status lines_link_received(ssize_t got, size_t bytes);
/** @return RING_ERR_PEER unless @p theirs is a shared-memory greeting of this version. */
ring_status lines_link_check(const lines_greeting *theirs);
/** Checks whether the peer has announced that it has mapped our memory. */
void lines_link_check_mapped(lines_link *l);

ring_status lines_link_send(transport_link *head, const transport_frame *frame, const void *payload,
                            bool copy);
void *lines_link_reserve(transport_link *head);
uint64_t lines_link_flushed(const transport_link *head);
void lines_link_release(transport_link *head, uint64_t messages);
uint64_t lines_link_released(const transport_link *head);
ring_status lines_link_progress(transport_link *head);
ring_status lines_link_peek(transport_link *head, const transport_frame **frame,
                            const void **payload);
ring_status lines_link_pull(transport_link *head, void *dst);
void lines_link_consume(transport_link *head);
const _Atomic uint32_t *lines_link_news(const transport_link *head, uint32_t *value);
int lines_link_wake_fd(const transport_link *head);
bool lines_link_arm(transport_link *head, bool wants_send);
void lines_link_disarm(transport_link *head);

#endif
