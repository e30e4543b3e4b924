/* SPDX-License-Identifier: Apache-2.0
 *
 * slots_link: a link made of two slot rings, one each way, and the socket over which it was
 * opened. All calls of a transport but those that set up memory and refer to it.
 *
 * The socket carries no data any more: a byte on it is the bell that wakes a sleeping peer,
 * and its end says that the peer is gone. Neither is looked at while frames flow. Frames that
 * a peer published before it went are still delivered; then the link is broken.
 */
#ifndef RING_SLOTS_LINK_H
#define RING_SLOTS_LINK_H

#include "slots.h"

typedef struct slots_link {
    transport_link head;
    int fd;
    slots_producer out;
    slots_consumer in;
    const slot *oldest;    /* the peeked slot, NULL: none                               */
    transport_frame frame; /* its header, copied: what was checked does not change     */
    unsigned quiet;        /* turns without a frame since the socket was looked at      */
    bool gone;             /* the socket has ended                                      */
    bool armed_in, armed_out;
    ring_status broken;
    const char *why;
} slots_link;

/** The last step of open(): l->out produces already, the rest of @p l is zero.
 *  @param in  the ring that the peer produces. */
void slots_link_init(slots_link *l, const transport *made_by, const transport_peer *peer,
                     slots_ring *in);

ring_status slots_link_send(transport_link *head, const transport_frame *frame,
                            const void *payload);
void *slots_link_reserve(transport_link *head);
uint64_t slots_link_flushed(const transport_link *head);
ring_status slots_link_progress(transport_link *head);
ring_status slots_link_peek(transport_link *head, const transport_frame **frame,
                            const void **payload);
ring_status slots_link_pull(transport_link *head, void *dst);
void slots_link_consume(transport_link *head);
int slots_link_wake_fd(const transport_link *head);
bool slots_link_arm(transport_link *head, bool wants_send);
void slots_link_disarm(transport_link *head);

#endif
