/* SPDX-License-Identifier: Apache-2.0
 *
 * queue_pair: implements one reliable connection through a port of an adapter. Requests complete in
 * order, and their writes reach the peer's memory in order.
 */
#ifndef RING_QUEUE_PAIR_H
#define RING_QUEUE_PAIR_H

#include "completions.h"
#include "transport.h"

/** Most requests in flight; further ones wait in the link's ring. */
enum { QUEUE_DEPTH = 512 };

typedef struct queue_pair {
    const adapter_port *port; /* NULL: the queue pair does not exist */
    struct ibv_qp *qp;
    completion_sink sink;
    uint32_t handle;
    uint32_t posted, depth; /* requests */
    uint32_t unsignalled;   /* since the last request with a completion */
    uint32_t inlined;       /* bytes that a request may carry inline */
    uint32_t first_packet;
    union ibv_gid gid;
    int gid_index; /* its entry in the port's table */
    bool connected;
} queue_pair;

/** The facts about a queue pair that the other end needs to connect to it. */
typedef struct queue_pair_address {
    uint32_t number, first_packet, handle;
    uint16_t lid;
    uint8_t ethernet, mtu, reads; /* reads: most in flight at a time */
    unsigned char gid[16];
} queue_pair_address;

/** @param wake, armed  see completion_sink. */
ring_status queue_pair_open(queue_pair *q, const adapter_port *port, const transport_ib *options,
                            int wake, _Atomic bool *armed);
queue_pair_address queue_pair_address_of(const queue_pair *q);
/** @return RING_ERR_PEER, with fail() called, if the two ports cannot be connected. */
ring_status queue_pair_connect(queue_pair *q, const queue_pair_address *peer,
                               const transport_ib *options);
/** Closes a queue pair. When this returns, no transfer of either end uses it. */
void queue_pair_close(queue_pair *q);

typedef struct queue_request {
    enum ibv_wr_opcode opcode;
    void *local;
    uint32_t local_key;
    size_t bytes;
    uint64_t remote;
    uint32_t remote_key;
    bool inlined;   /* copied when posted */
    bool signals;   /* asks for a completion; every SIGNAL_EVERY-th request does so anyway */
    uint32_t wakes; /* handle of the peer's sink, with WRITE_WITH_IMM */
} queue_request;

/** @return true if @p count requests may be posted. */
bool queue_pair_has_room(queue_pair *q, uint32_t count);
/** @return false, with errno set, if the adapter refuses it. */
bool queue_pair_post(queue_pair *q, const queue_request *request);
/** @return true if request @p n (queue_pair.posted after posting it) is complete. */
static inline bool queue_pair_is_done(const queue_pair *q, uint32_t n)
{
    return (int32_t)(atomic_load_explicit(&q->sink.done, memory_order_acquire) - n) >= 0;
}
static inline enum ibv_wc_status queue_pair_failure(const queue_pair *q)
{
    return (enum ibv_wc_status)atomic_load_explicit(&q->sink.failed, memory_order_acquire);
}

#endif
