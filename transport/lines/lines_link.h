/* SPDX-License-Identifier: Apache-2.0
 *
 * lines_link: implements a link that consists of two rings of lines, one per direction, and the
 * socket over which it was opened. It has all calls of a transport except those that set up memory
 * and refer to it, which loop and shm add.
 *
 * Opening. Each end makes the ring through which it sends, and passes it to the peer in a greeting.
 * When an end has received the peer's greeting and mapped the peer's ring, the link is open at that
 * end. An end that has also mapped the peer's heap announces this with LINES_MAPPED; until then no
 * frame refers to that heap.
 *
 * The socket of an open link carries no data. It becomes a bell (bell.h), which wakes a sleeping
 * peer and shows when the peer has ended. It is not read while frames flow. All links of a pair of
 * ranks share it, so an end that closes one link announces that in its ring. Frames that a peer
 * published before it ended are still delivered; after the last of them the link breaks.
 */
#ifndef RING_LINES_LINK_H
#define RING_LINES_LINK_H

#include "bell.h"
#include "lines.h"

#include <sys/types.h>

/** The first message that each end sends. */
typedef struct lines_greeting {
    char magic[8];
    uint32_t lines;    /* LINES of the sender's build                        */
    uint32_t barriers; /* 1: the sender has registered for membarrier        */
    uint64_t offer;    /* loop: number of its ring. shm: bytes of its heap   */
    uint64_t nonce;    /* random; 0: the sender shares no bell               */
    uint64_t bell;     /* id of the shared bell that the sender offers; 0: it has no bell */
} lines_greeting;

typedef struct lines_link {
    transport_link head;
    int fd;     /* the socket, until the link is open; then -1          */
    bell *bell; /* NULL until the link is open; then a shared or new one */
    transport_pair pair;
    uint64_t nonce; /* of this end's greeting */
    bell *offered;  /* the bell that this end's greeting offers, or NULL */
    bell_waiter waiter;
    ring_status state; /* RING_IN_PROGRESS: opening; RING_OK: open; else the failure's status */
    char why[128];     /* the failure's text */
    /** Sends this end's greeting if it is not sent yet, checks for the peer's greeting, and passes
     *  it to lines_link_accept(). Set by loop and shm. */
    ring_status (*look)(struct lines_link *l);
    uint8_t flags; /* FRAME_* flags that received frames may have */
    bool greeted;  /* this end's greeting has been sent */
    bool answered; /* the peer has announced whether it has mapped our memory (lines_ring.maps) */
    lines_producer out;
    lines_consumer in;
    bool reserved;            /* reserve() has returned the room in `out`                        */
    bool refused;             /* there was no room for the last frame                            */
    size_t wanted;            /* payload bytes of the last frame for which room was sought       */
    uint64_t notified;        /* number of released messages at the last arm() with wants_send   */
    bool peeked;              /* `frame` is the header of the oldest frame                       */
    transport_frame frame;    /* a copy, so that the peer cannot change fields after the check   */
    unsigned quiet;           /* calls of progress() without a frame since the bell was drained  */
    bool gone;                /* the peer has closed its end, or has ended                       */
    bool armed_in, armed_out; /* the caller sleeps until a frame, or room, becomes available  */
} lines_link;

/** Initialises @p l, which must be all zero, and takes ownership of the socket; lines_link_close()
 *  undoes both. */
void lines_link_init(lines_link *l, const transport *made_by, const transport_peer *peer,
                     ring_status (*look)(lines_link *l));
/** Announces to the peer that this end is closed, and drops the socket and the bell. The rings must
 *  still exist. */
void lines_link_close(lines_link *l);
/** @return this end's greeting. Registers the process for membarrier if the kernel supports it. */
lines_greeting lines_link_greeting(const lines_link *l, uint64_t offer);
/** Completes opening with the peer's greeting. This end's greeting must have been sent.
 *  @param in      the ring that the peer produces.
 *  @param refers  FRAME_REF if this end has mapped the peer's memory, FRAME_STORED if the peer has
 *                 mapped ours. */
ring_status lines_link_accept(lines_link *l, const lines_greeting *theirs, lines_ring *in,
                              uint8_t refers);
/** Checks the result @p got of receiving a greeting of @p bytes, which always arrives in one piece.
 *  @return RING_IN_PROGRESS: it has not arrived yet. */
ring_status lines_link_received(ssize_t got, size_t bytes);
/** @return RING_ERR_PEER unless @p theirs is a shared-memory greeting of this version. */
ring_status lines_link_check(const lines_greeting *theirs);
/** Updates `answered` and `flags` if the peer has announced whether it has mapped our memory. */
void lines_link_check_mapped(lines_link *l);

/* The calls of a transport; see transport.h. */

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
