/* SPDX-License-Identifier: Apache-2.0
 *
 * rma: implements a transport between threads of one process that can only put into memory of the
 * other end and get from it, over an adapter that is late and keeps no order (nic.h). So code that
 * works over it relies only on the guarantees of networks with remote memory access.
 *
 * Frames are put into slots at the other end: each header into the next slot, and its payload to
 * the next place of a buffer beside the slots, which both ends derive from the earlier frames. The
 * header is the put's notice, so it is written last; its stamp shows that it has arrived,
 * regardless of other transfers in flight. Two words are put in the other direction: the numbers of
 * slots taken and of messages released. The adapter reads them when it executes the put, and only
 * one such put is in flight at a time.
 *
 * The key of a region is sent in a slot of its own before the first reference to it.
 */
#ifndef TEST_DOUBLES_RMA_H
#define TEST_DOUBLES_RMA_H

#include "nic.h"
#include "region_keys.h"
#include "transport.h"

enum {
    RMA_SLOTS = 8192,                     /* twice the window's shortest frames */
    RMA_PAYLOAD = 10 * TRANSPORT_SEGMENT, /* the window, one segment more, and an unused end */
    RMA_KEY = 0x40                        /* the flag of a slot that announces a region */
};

enum { RMA_TAKEN, RMA_RELEASED };

/* Registered with the adapter; the peer puts into it. */
typedef struct rma_inbox {
    _Alignas(RING_CACHE_LINE) _Atomic uint64_t words[NIC_WORDS]; /* of what this end sent */
    _Alignas(RING_CACHE_LINE) transport_frame slot[RMA_SLOTS];
    _Alignas(RING_CACHE_LINE) unsigned char payload[RMA_PAYLOAD];
} rma_inbox;

/* The source of this end's puts. */
typedef struct rma_outbox {
    _Alignas(RING_CACHE_LINE) _Atomic uint64_t words[NIC_WORDS]; /* of what this end received */
    _Alignas(RING_CACHE_LINE) unsigned char payload[RMA_PAYLOAD];
} rma_outbox;

typedef struct rma_link {
    transport_link head;
    ring_status state; /* RING_IN_PROGRESS: opening, RING_OK: open, else why it is broken */
    char why[128];
    bool gone; /* the peer has closed the socket */
    int fd, wake, epoll;
    unsigned quiet;
    nic_port *port;
    rma_inbox *in;
    rma_outbox *out;
    uint64_t in_key, peer_key; /* of the inboxes */
    key_table told, known;     /* keys of regions: ours that the peer has, and the peer's */
    /* Sending: slots, and bytes of payload, from 0. */
    uint64_t slots_sent, slots_done, bytes_sent, flushed;
    ticket over[RMA_SLOTS];
    uint64_t end[RMA_SLOTS]; /* payload bytes up to and including those of a slot */
    bool is_frame[RMA_SLOTS];
    bool refused;
    uint64_t told_flushed, told_released, told_gets;
    /* Receiving. */
    uint64_t slots_taken, bytes_taken;
    bool peeked;
    transport_frame frame;
    _Atomic bool
        telling; /* a put of the words is in flight, and the adapter has not read them yet */
    _Atomic bool armed;
} rma_link;

/* ---- rma.c ---- */
ring_status rma_break(rma_link *l, ring_status status, const char *why);
/** @return RING_OK, RING_IN_PROGRESS while the link opens, or the status that broke it. */
ring_status rma_state(rma_link *l);

/* ---- rma_frames.c ---- */
ring_status rma_send(transport_link *head, const transport_frame *frame, const void *payload,
                     bool copy);
void *rma_reserve(transport_link *head);
uint64_t rma_flushed(const transport_link *head);
void rma_release(transport_link *head, uint64_t messages);
uint64_t rma_released(const transport_link *head);
ring_status rma_peek(transport_link *head, const transport_frame **frame, const void **payload);
ring_status rma_pull(transport_link *head, void *dst);
void rma_consume(transport_link *head);
const _Atomic uint32_t *rma_news(const transport_link *head, uint32_t *value);
uint64_t rma_ref(transport_link *head, const void *ptr, size_t bytes);
ring_status rma_put(transport_link *head, const transport_frame *frame, const void *data,
                    uint64_t dst_ref);
ring_status rma_get(transport_link *head, void *dst, uint64_t ref, size_t bytes, ticket *over);
/** @return true if a frame has arrived that has not been peeked. */
bool rma_has_frame(const rma_link *l);
/** @return true if frames are in flight, or were at the last call. */
bool rma_is_sending(rma_link *l);
/** @return true if a whole segment fits. */
bool rma_fits(rma_link *l);

extern const transport transport_rma;

#endif
