/* SPDX-License-Identifier: Apache-2.0
 * Creates, connects and closes queue pairs, and posts requests to them. */
#include "queue_pair.h"

#include "gids.h"

#include <errno.h>

enum {
    SIGNAL_EVERY = 32, /* every 32nd request asks for a completion, which frees queue entries */
    READS = 16,        /* most RDMA reads in flight                                           */
    NEVER_RNR = 7,     /* retry for ever while the peer has no receive request for a wake-up  */
    HOPS = 255,        /* hop limit of routed packets                                         */
    PACKET_BITS = 24   /* bits of a packet sequence number                                    */
};

/* ---- Opening ------------------------------------------------------------------------------ */

static struct ibv_qp *create(const ibverbs *api, queue_pair *q)
{
    const struct adapter_device *d = q->port->device;
    struct ibv_qp_init_attr wanted = {
        .send_cq = d->cq,
        .recv_cq = d->cq,
        .srq = d->srq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = QUEUE_DEPTH,
                .max_send_sge = 1,
                .max_inline_data = sizeof(transport_frame)},
    };
    if (d->attributes.max_qp_wr < QUEUE_DEPTH)
        wanted.cap.max_send_wr = (uint32_t)d->attributes.max_qp_wr;
    struct ibv_qp *qp = api->create_qp(d->pd, &wanted);
    if (qp == NULL && errno == EINVAL) { /* some adapters support no inline data */
        wanted.cap.max_inline_data = 0;
        qp = api->create_qp(d->pd, &wanted);
    }
    q->depth = wanted.cap.max_send_wr < QUEUE_DEPTH ? wanted.cap.max_send_wr : QUEUE_DEPTH;
    q->inlined = wanted.cap.max_inline_data;
    return qp;
}

static int initialize(const ibverbs *api, const queue_pair *q, const transport_ib *options)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT,
                                     .pkey_index = (uint16_t)options->pkey_index,
                                     .port_num = q->port->number,
                                     .qp_access_flags = IBV_ACCESS_LOCAL_WRITE |
                                                        IBV_ACCESS_REMOTE_WRITE |
                                                        IBV_ACCESS_REMOTE_READ};
    return api->modify_qp(q->qp, &attributes,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/* Closes the queue pair after @p what has failed with @p error. */
static ring_status refuse(queue_pair *q, const char *what, int error)
{
    errno = error;
    fail(error == ENOMEM ? RING_ERR_MEMORY : RING_ERR_SYSTEM,
         "%s on port %s: %m; is the limit on locked memory too low (ulimit -l), or are all queue "
         "pairs of the adapter in use (rdma resource)?",
         what, q->port->name);
    queue_pair_close(q);
    return error == ENOMEM ? RING_ERR_MEMORY : RING_ERR_SYSTEM;
}

ring_status queue_pair_open(queue_pair *q, const adapter_port *port, const transport_ib *options,
                            int wake, _Atomic bool *armed)
{
    const ibverbs *api = ibverbs_load();
    *q = (queue_pair){.port = port,
                      .gid = port->gid,
                      .gid_index = port->gid_index,
                      .sink = {.wake = wake, .armed = armed}};
    const int wanted = options->gid_index;
    if (wanted >= 0 && gid_take(port, wanted, &q->gid))
        q->gid_index = wanted;
    else if (wanted >= 0 && options->gid_from == NULL)
        return RING_ERR_CONFIG;
    else if (wanted >= 0)
        log_warn("ignoring %s=%d: port %s has no such GID", options->gid_from, wanted, port->name);
    q->handle = completions_enter(&q->sink);
    if (q->handle == 0)
        return RING_ERR_MEMORY;
    q->qp = create(api, q);
    if (q->qp == NULL)
        return refuse(q, "creating a queue pair", errno);
    const int error = initialize(api, q, options);
    if (error != 0)
        return refuse(q, "initializing a queue pair (is RING_IB_PKEY correct?)", error);
    q->first_packet = (q->handle * 2654435761u) >> (32 - PACKET_BITS);
    return RING_OK;
}

/* @return how many RDMA reads may be in flight. @param most  the adapter's limit. */
static uint8_t reads_of(int most)
{
    return (uint8_t)(most < READS ? (most > 0 ? most : 1) : READS);
}

queue_pair_address queue_pair_address_of(const queue_pair *q)
{
    queue_pair_address a = {.number = q->qp->qp_num,
                            .first_packet = q->first_packet,
                            .handle = q->handle,
                            .lid = q->port->lid,
                            .ethernet = q->port->ethernet,
                            .mtu = (uint8_t)q->port->mtu,
                            .reads = reads_of(q->port->device->attributes.max_qp_rd_atom)};
    memcpy(a.gid, q->gid.raw, sizeof a.gid);
    return a;
}

/* ---- Connecting --------------------------------------------------------------------------- */

static struct ibv_ah_attr path_to(const queue_pair *q, const queue_pair_address *peer,
                                  const transport_ib *options)
{
    struct ibv_ah_attr path = {.dlid = peer->lid,
                               .sl = (uint8_t)options->service_level,
                               .port_num = q->port->number};
    const bool same_subnet = memcmp(q->gid.raw, peer->gid, sizeof q->gid.global.subnet_prefix) == 0;
    path.is_global = q->port->ethernet || !same_subnet;
    if (!path.is_global)
        return path;
    path.grh.sgid_index = (uint8_t)q->gid_index;
    path.grh.hop_limit = HOPS;
    path.grh.traffic_class = (uint8_t)options->traffic_class;
    memcpy(path.grh.dgid.raw, peer->gid, sizeof peer->gid);
    return path;
}

static int ready_to_receive(const ibverbs *api, const queue_pair *q, const queue_pair_address *peer,
                            const transport_ib *options)
{
    const uint8_t mtu = (uint8_t)q->port->mtu;
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RTR,
                                     .path_mtu = (enum ibv_mtu)(mtu < peer->mtu ? mtu : peer->mtu),
                                     .dest_qp_num = peer->number,
                                     .rq_psn = peer->first_packet,
                                     .max_dest_rd_atomic = reads_of(
                                         q->port->device->attributes.max_qp_rd_atom),
                                     .min_rnr_timer = 12,
                                     .ah_attr = path_to(q, peer, options)};
    return api->modify_qp(q->qp, &attributes,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int ready_to_send(const ibverbs *api, const queue_pair *q, const queue_pair_address *peer,
                         const transport_ib *options)
{
    const uint8_t own = reads_of(q->port->device->attributes.max_qp_init_rd_atom);
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RTS,
                                     .timeout = (uint8_t)options->timeout,
                                     .retry_cnt = (uint8_t)options->retries,
                                     .rnr_retry = NEVER_RNR,
                                     .sq_psn = q->first_packet,
                                     .max_rd_atomic = own < peer->reads ? own : peer->reads};
    return api->modify_qp(q->qp, &attributes,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

ring_status queue_pair_connect(queue_pair *q, const queue_pair_address *peer,
                               const transport_ib *options)
{
    const ibverbs *api = ibverbs_load();
    char mine[40], theirs[40];
    union ibv_gid gid;
    memcpy(gid.raw, peer->gid, sizeof gid.raw);
    gid_write(&q->gid, mine, sizeof mine);
    gid_write(&gid, theirs, sizeof theirs);
    if (q->port->ethernet != (peer->ethernet != 0))
        return fail(RING_ERR_PEER,
                    "port %s is %s, but the peer's port is %s; choose ports of one network with "
                    "RING_IB_HCA",
                    q->port->name, q->port->ethernet ? "RoCE" : "InfiniBand",
                    peer->ethernet ? "RoCE" : "InfiniBand");
    int error = ready_to_receive(api, q, peer, options);
    if (error == 0)
        error = ready_to_send(api, q, peer, options);
    if (error != 0) {
        errno = error;
        return fail(RING_ERR_PEER,
                    "connecting port %s (GID %s) to the peer's port (GID %s): %m; is there a route "
                    "between them? See 'ringinfo doctor', RING_IB_HCA and RING_IB_GID_INDEX",
                    q->port->name, mine, theirs);
    }
    q->connected = true;
    return RING_OK;
}

/* completions_destroy() polls first, because destroying the queue pair drops its completions, and
 * the receive requests of wake-ups would not be posted again. */
void queue_pair_close(queue_pair *q)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_ERR};
    completions_leave(q->handle);
    if (q->qp != NULL) {
        (void)ibverbs_load()->modify_qp(q->qp, &attributes, IBV_QP_STATE);
        completions_destroy(q->port->device, q->qp);
    }
    q->qp = NULL;
    q->handle = 0;
    q->connected = false;
}

/* ---- Posting ------------------------------------------------------------------------------ */

static bool has_room(const queue_pair *q, uint32_t count)
{
    const uint32_t done = atomic_load_explicit(&q->sink.done, memory_order_acquire);
    return q->posted - done + count <= q->depth;
}

bool queue_pair_has_room(queue_pair *q, uint32_t count)
{
    if (has_room(q, count))
        return true;
    completions_poll(q->port->device);
    return has_room(q, count);
}

bool queue_pair_post(queue_pair *q, const queue_request *r)
{
    const bool signals = r->signals || ++q->unsignalled >= SIGNAL_EVERY;
    if (signals)
        q->unsignalled = 0;
    struct ibv_sge piece = {.addr = (uintptr_t)r->local,
                            .length = (uint32_t)r->bytes,
                            .lkey = r->local_key};
    struct ibv_send_wr request = {.wr_id = (uint64_t)q->handle << 32 | (q->posted + 1),
                                  .sg_list = &piece,
                                  .num_sge = r->bytes > 0,
                                  .opcode = r->opcode,
                                  .send_flags = (signals ? IBV_SEND_SIGNALED : 0u) |
                                                (r->inlined ? IBV_SEND_INLINE : 0u) |
                                                (r->wakes != 0 ? IBV_SEND_SOLICITED : 0u),
                                  .imm_data = r->wakes};
    struct ibv_send_wr *bad;
    request.wr.rdma.remote_addr = r->remote;
    request.wr.rdma.rkey = r->remote_key;
    const int error = ibv_post_send(q->qp, &request, &bad);
    if (error == 0)
        q->posted++;
    else
        errno = error;
    return error == 0;
}
