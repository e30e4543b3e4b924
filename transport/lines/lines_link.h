/* SPDX-License-Identifier: Apache-2.0
 *
 * lines_link: a link made of two rings of lines, one each way, and the socket over which it was
 * opened. It implements all calls of a transport except those that set up memory and refer to it.
 *
 * Opening. Each end makes the ring that it sends through, greets with it, and maps the other's when
 * its greeting comes: then the link is open for that end. An end that has also mapped the other's
 * heap announces it by LINES_MAPPED; before that no frame refers to that heap.
 *
 * An open link's socket carries no data: it is a bell (bell.h), which wakes a sleeping peer and
 * shows that the peer is gone. It is not read while frames flow. Links of one pair of ranks share
 * it, so an end that closes announces that in its ring. Frames that a peer published before it went
 * are still delivered; then the link is broken.
 */
#ifndef RING_LINES_LINK_H
#define RING_LINES_LINK_H

#include "bell.h"
#include "lines.h"

#include <sys/types.h>

/** The first message of an end; `offer` is the transport's own. */
typedef struct lines_greeting {
    char magic[8];
    uint32_t lines;    /* of a ring             */
    uint32_t barriers; /* it has joined membarrier */
    uint64_t offer;
    uint64_t nonce; /* random; 0: it shares no bell */
    uint64_t bell;  /* the shared bell that this end would use; 0: it has none */
} lines_greeting;

typedef struct lines_link {
    transport_link head;
    int fd;     /* the socket until the link is open */
    bell *bell; /* from then on */
    transport_pair pair;
    uint64_t nonce;
    bell *offered; /* NULL: none */
    bell_sleeper sleeper;
    ring_status state; /* RING_IN_PROGRESS: opening, RING_OK: open, else its failure */
    char why[128];
    /** Greets if it has not yet, checks for the other end's greeting, and takes it with
     *  lines_link_meet(). */
    ring_status (*look)(struct lines_link *l);
    uint8_t flags; /* allowed flags of its frames */
    bool greeted;  /* the peer will have this end's greeting */
    bool answered; /* the peer has announced whether it has mapped our memory (lines_ring.maps) */
    lines_producer out;
    lines_consumer in;
    bool reserved;         /* out's room was given by reserve()                               */
    bool refused;          /* there was no room for:                                          */
    size_t wanted;         /* bytes                                                           */
    uint64_t notified;     /* releases at the last arm() */
    bool peeked;           /* the oldest frame was:                                           */
    transport_frame frame; /* its header, copied: checked fields cannot change */
    unsigned quiet;        /* calls without a frame since the bell was heard */
    bool gone;             /* the peer has closed its end, or has ended */
    bool armed_in, armed_out;
} lines_link;

/** The first step of open(): takes the socket over. @p l is zero; lines_link_leave() ends it. */
void lines_link_init(lines_link *l, const transport *made_by, const transport_peer *peer,
                     ring_status (*look)(lines_link *l));
/** Announces to the peer that this end is closed, and lets go of socket and bell. The rings are
 *  still there. */
void lines_link_leave(lines_link *l);
/** This end's greeting; joins membarrier if it can. */
lines_greeting lines_link_greeting(const lines_link *l, uint64_t offer);
/** Takes the other end's greeting, once this end's was sent. @param in  the ring that it produces.
 *  @param refers  FRAME_REF if its memory is mapped here, FRAME_STORED if ours is there. */
ring_status lines_link_meet(lines_link *l, const lines_greeting *theirs, lines_ring *in,
                            uint8_t refers);
/** The result of recv() of the first message on a socket, which comes as a whole.
 *  @return RING_IN_PROGRESS: it is not here yet. */
ring_status lines_link_received(ssize_t got, size_t bytes);
/** @return RING_ERR_PEER unless it is the greeting of a link over lines. */
ring_status lines_link_check(const lines_greeting *theirs);
/** Looks whether the peer has announced that it mapped our memory. */
void lines_link_hear_answer(lines_link *l);

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
