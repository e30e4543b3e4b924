/* SPDX-License-Identifier: Apache-2.0
 *
 * lines_link: a link made of two rings of lines, one each way, and the socket over which it
 * was opened. All calls of a transport but those that set up memory and refer to it.
 *
 * The socket carries no data any more: a byte on it is the bell that wakes a sleeping peer,
 * and its end says that the peer is gone. Neither is looked at while frames flow. Frames that
 * a peer published before it went are still delivered; then the link is broken.
 */
#ifndef RING_LINES_LINK_H
#define RING_LINES_LINK_H

#include "lines.h"

typedef struct lines_link {
    transport_link head;
    int fd;
    uint8_t flags; /* that its frames may have                                           */
    lines_producer out;
    lines_consumer in;
    bool reserved;    /* out's room was given by reserve()                               */
    bool refused;     /* there was no room for:                                          */
    size_t wanted;    /* bytes                                                           */
    uint64_t told;    /* releases that arm() has told of                                 */
    bool peeked;      /* the oldest frame was:                                           */
    transport_frame frame; /* its header, copied: what was checked does not change       */
    unsigned quiet;   /* turns without a frame since the socket was looked at            */
    bool gone;        /* the socket has ended                                            */
    bool armed_in, armed_out;
    ring_status broken;
    const char *why;
} lines_link;

/** What open() finds out before its last step. */
typedef struct lines_setup {
    lines_ring *in; /* that the peer produces                                     */
    bool barriers;  /* the peer has joined membarrier, as its greeting says       */
    uint8_t refers; /* FRAME_REF if the peer's memory is mapped here, FRAME_STORED if ours
                       is mapped there                                            */
} lines_setup;

/** The last step of open(): l->out produces already, the rest of @p l is zero. */
void lines_link_init(lines_link *l, const transport *made_by, const transport_peer *peer,
                     const lines_setup *setup);

ring_status lines_link_send(transport_link *head, const transport_frame *frame,
                            const void *payload, bool copy);
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
