/* SPDX-License-Identifier: Apache-2.0
 *
 * queue_pair: implements one reliable connection through a port of an adapter. Requests complete in
 * order, and their writes reach the peer's memory in order.
 */
#ifndef RING_QUEUE_PAIR_H
#define RING_QUEUE_PAIR_H

#include "completions.h"
#include "transport.h"

/** Most requests in flight; further operations stay in the link's ring. */
enum { QUEUE_DEPTH = 512 };

typedef struct queue_pair {
    const adapter_port *port; /* NULL: the queue pair does not exist */
    struct ibv_qp *qp;
    completion_sink sink;
    uint32_t handle;       /* of `sink` */
    uint32_t posted;       /* number of posted requests */
    uint32_t depth;        /* most requests in flight */
    uint32_t unsignalled;  /* requests since the last one with a completion */
    uint32_t inlined;      /* bytes that a request may carry inline */
    uint32_t first_packet; /* sequence number of this end's first packet */
    union ibv_gid gid;
    int gid_index; /* the index of `gid` in the port's table */
    bool connected;
} queue_pair;

/** The facts about a queue pair that the other end needs to connect to it. */
typedef struct queue_pair_address {
    uint32_t number, first_packet, handle;
    uint16_t lid;
    uint8_t ethernet, mtu;
    uint8_t reads; /* most RDMA reads in flight that this end answers */
    unsigned char gid[16];
} queue_pair_address;

/** Creates a queue pair. On failure, nothing remains to be closed.
 *  @param wake, armed  as in completion_sink. */
ring_status queue_pair_open(queue_pair *q, const adapter_port *port, const transport_ib *options,
                            int wake, _Atomic bool *armed);
/** @return the address of this end, for the peer. */
queue_pair_address queue_pair_address_of(const queue_pair *q);
/** Connects the queue pair to the peer's. @return RING_ERR_PEER, with the reason passed to fail(),
 *  if the two ports cannot be connected. */
ring_status queue_pair_connect(queue_pair *q, const queue_pair_address *peer,
                               const transport_ib *options);
/** Closes a queue pair. When this returns, no transfer of either end uses it. */
void queue_pair_close(queue_pair *q);

/** An RDMA write or read of `bytes` between `local` and the peer's address `remote`. */
typedef struct queue_request {
    enum ibv_wr_opcode opcode;
    void *local;
    uint32_t local_key;
    size_t bytes;
    uint64_t remote;
    uint32_t remote_key;
    bool inlined;   /* the bytes are copied into the request when it is posted */
    bool signals;   /* asks for a completion; every SIGNAL_EVERY-th request does so anyway */
    uint32_t wakes; /* handle of the peer's sink to wake, with WRITE_WITH_IMM; else 0 */
} queue_request;

/** @return true if there is room for @p count requests. Polls the device if there is not. */
bool queue_pair_has_room(queue_pair *q, uint32_t count);
/** Posts a request, which gets the number `posted` + 1. @return false, with errno set, if the
 *  adapter rejects it. */
bool queue_pair_post(queue_pair *q, const queue_request *request);
/** @return true if request number @p n is complete. */
static inline bool queue_pair_is_done(const queue_pair *q, uint32_t n)
{
    return (int32_t)(atomic_load_explicit(&q->sink.done, memory_order_acquire) - n) >= 0;
}
/** @return the status of the first failed request; IBV_WC_SUCCESS if no request has failed. */
static inline enum ibv_wc_status queue_pair_failure(const queue_pair *q)
{
    return (enum ibv_wc_status)atomic_load_explicit(&q->sink.failed, memory_order_acquire);
}

#endif
