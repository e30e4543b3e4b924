/* SPDX-License-Identifier: Apache-2.0
 * Executes requests: one waits for its peer, moves its bytes piece by piece, and is completed. */
#include "fake.h"

#include <string.h>

enum { WORD = 8 };
static const double LOOK_AGAIN = 100e-6;

static void failed(fake_send *s, enum ibv_wc_status status)
{
    s->phase = FAILED;
    s->status = status;
}

/* The peer refuses it, and is broken by it as well. */
static void refused(fake_send *s, fake_qp *peer, enum ibv_wc_status status,
                    enum ibv_event_type event)
{
    failed(s, status);
    if (peer->attr.qp_state != IBV_QPS_ERR)
        fake_async_event(peer->base.context, event, peer);
    fake_qp_break(peer);
}

/* ---- The way to the peer ---- */

static fake_device *device_of(const fake_qp *q)
{
    return fake_context_of(q->base.context)->device;
}

static bool leads_to(const struct ibv_ah_attr *ah, const fake_device *device)
{
    const union ibv_gid gid = fake_device_gid(device);
    if (ah->is_global && memcmp(&ah->grh.dgid, &gid, sizeof gid) != 0)
        return false;
    return !fake_settings_get()->infiniband || ah->dlid == fake_device_lid(device);
}

/* @return the peer if it answers. */
static fake_qp *reach(const fake_qp *q)
{
    fake_qp *peer = fake_qp_find(q->attr.dest_qp_num);
    if (peer == NULL || peer->attr.dest_qp_num != q->base.qp_num)
        return NULL;
    if (peer->attr.qp_state != IBV_QPS_RTR && peer->attr.qp_state != IBV_QPS_RTS)
        return NULL;
    const fake_device *here = device_of(q), *there = device_of(peer);
    if (here->cut || there->cut || peer->attr.rq_psn != q->attr.sq_psn)
        return NULL;
    return leads_to(&q->attr.ah_attr, there) && leads_to(&peer->attr.ah_attr, here) ? peer : NULL;
}

/* 4.096 us * 2^timeout, once and for each retry; 0 is for ever. */
static double patience(const fake_qp *q)
{
    return 4.096e-6 * (double)(1u << q->attr.timeout) * (q->attr.retry_cnt + 1);
}

static void wait_for_peer(fake_qp *q, fake_send *s, double now)
{
    if (q->unheard_since == 0)
        q->unheard_since = now;
    if (q->attr.timeout != 0 && now - q->unheard_since > patience(q))
        failed(s, IBV_WC_RETRY_EXC_ERR);
    else
        q->wake_at = now + LOOK_AGAIN;
}

/* Its first message tells a peer that is not ready to send that this end is. */
static void establish(fake_qp *peer)
{
    if (!peer->established && peer->attr.qp_state == IBV_QPS_RTR)
        fake_async_event(peer->base.context, IBV_EVENT_COMM_EST, peer);
    peer->established = true;
}

/* ---- Memory ---- */

static bool is_send(const fake_send *s)
{
    return s->wr.opcode == IBV_WR_SEND || s->wr.opcode == IBV_WR_SEND_WITH_IMM;
}

static bool needs_no_receive(const fake_send *s)
{
    return s->wr.opcode == IBV_WR_RDMA_WRITE || s->wr.opcode == IBV_WR_RDMA_READ;
}

static bool local_spans(const fake_qp *q, const fake_send *s, fake_spans *out)
{
    if (s->inlined != NULL) {
        out->count = s->bytes > 0;
        out->span[0].at = s->inlined;
        out->span[0].bytes = s->bytes;
        return true;
    }
    return fake_spans_of(out, q->base.pd, s->sge, s->wr.num_sge,
                         s->wr.opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0);
}

static bool remote_span(const fake_qp *peer, const fake_send *s, fake_spans *out)
{
    const unsigned access = s->wr.opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ
                                                             : IBV_ACCESS_REMOTE_WRITE;
    out->count = 1;
    out->span[0].bytes = s->bytes;
    out->span[0].at = fake_memory_at(peer->base.pd, s->wr.wr.rdma.rkey, true,
                                     s->wr.wr.rdma.remote_addr, s->bytes, access);
    return out->span[0].at != NULL && (peer->attr.qp_access_flags & access) == access;
}

/* @return false: the request has failed. */
static bool find_memory(const fake_qp *q, fake_qp *peer, fake_send *s, fake_spans *local,
                        fake_spans *remote)
{
    if (!local_spans(q, s, local))
        failed(s, IBV_WC_LOC_PROT_ERR);
    else if (!remote_span(peer, s, remote))
        refused(s, peer, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    else
        return true;
    return false;
}

/* ---- Pieces ---- */

static void shuffle(fake_send *s)
{
    for (int i = 0; i < s->pieces; i++)
        s->order[i] = (uint8_t)i;
    for (int i = s->pieces - 1; i > 0; i--) {
        const int other = (int)(fake_roll() % (uint64_t)(i + 1));
        const uint8_t moved = s->order[i];
        s->order[i] = s->order[other];
        s->order[other] = moved;
    }
}

/* Whole words of the memory that is written: an adapter does not tear those. */
static void cut_into_pieces(fake_send *s, const fake_spans *to)
{
    s->skew = to->count > 0 ? (uintptr_t)to->span[0].at % WORD : 0;
    const size_t words = (s->skew + s->bytes + WORD - 1) / WORD;
    const size_t each = (words + MOST_PIECES - 1) / MOST_PIECES;
    s->piece_bytes = each * WORD;
    s->pieces = (int)((words + each - 1) / each);
    s->moved = 0;
    shuffle(s);
}

static void move_piece(fake_send *s, const fake_spans *to, const fake_spans *from)
{
    const size_t piece = s->order[s->moved++];
    const size_t begin = piece > 0 ? piece * s->piece_bytes - s->skew : 0;
    size_t end = (piece + 1) * s->piece_bytes - s->skew;
    if (end > s->bytes)
        end = s->bytes;
    fake_copy(to, from, begin, end - begin);
}

static void move(const fake_qp *q, fake_qp *peer, fake_send *s)
{
    fake_spans local, remote;
    if (!find_memory(q, peer, s, &local, &remote))
        return;
    const bool is_read = s->wr.opcode == IBV_WR_RDMA_READ;
    const fake_spans *to = is_read ? &local : &remote, *from = is_read ? &remote : &local;
    if (s->pieces == 0)
        cut_into_pieces(s, to);
    move_piece(s, to, from);
    if (s->moved == s->pieces)
        s->phase = LANDED;
}

/* ---- Receives ---- */

/* Milliseconds by the code in min_rnr_timer. */
static double rnr_seconds(unsigned code)
{
    static const double ms[] = {655.36, 0.01,  0.02,  0.03,   0.04,   0.06,   0.08,   0.12,
                                0.16,   0.24,  0.32,  0.48,   0.64,   0.96,   1.28,   1.92,
                                2.56,   3.84,  5.12,  7.68,   10.24,  15.36,  20.48,  30.72,
                                40.96,  61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};
    return 1e-3 * ms[code % 32];
}

static void not_ready(fake_qp *q, const fake_qp *peer, fake_send *s, double now)
{
    fake_counts.rnr_naks++;
    q->naks++;
    if (q->attr.rnr_retry < 7 && q->naks > q->attr.rnr_retry)
        failed(s, IBV_WC_RNR_RETRY_EXC_ERR);
    else
        q->wake_at = now + rnr_seconds(peer->attr.min_rnr_timer);
}

static void complete_receive(fake_qp *peer, const fake_send *s, const fake_receive *r,
                             enum ibv_wc_status status)
{
    fake_completion c = {.receives = fake_qp_receives(peer)->id,
                         .solicited = (s->wr.send_flags & IBV_SEND_SOLICITED) != 0};
    const bool immediate = s->wr.opcode != IBV_WR_SEND;
    c.wc.wr_id = r->wr_id;
    c.wc.status = status;
    c.wc.opcode = is_send(s) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
    c.wc.byte_len = (uint32_t)s->bytes;
    c.wc.qp_num = peer->base.qp_num;
    c.wc.wc_flags = immediate ? IBV_WC_WITH_IMM : 0;
    c.wc.imm_data = immediate ? s->wr.imm_data : 0;
    fake_cq_add(peer->base.recv_cq, &c);
}

/* Of a SEND; all at once. @return how the receive ends. */
static enum ibv_wc_status fill_receive(const fake_qp *peer, fake_send *s, const fake_spans *from,
                                       const fake_receive *r)
{
    fake_spans to;
    if (!fake_spans_of(&to, peer->base.pd, r->sge, r->sges, IBV_ACCESS_LOCAL_WRITE))
        return IBV_WC_LOC_PROT_ERR;
    if (fake_spans_bytes(&to) < s->bytes)
        return IBV_WC_LOC_LEN_ERR;
    cut_into_pieces(s, &to);
    while (s->moved < s->pieces)
        move_piece(s, &to, from);
    return IBV_WC_SUCCESS;
}

static void receive(fake_qp *peer, fake_send *s, const fake_spans *from, const fake_receive *r)
{
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    if (is_send(s) && s->bytes > 0)
        status = fill_receive(peer, s, from, r);
    complete_receive(peer, s, r, status);
    if (status == IBV_WC_SUCCESS)
        s->phase = DONE;
    else
        refused(s, peer, status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR,
                IBV_EVENT_QP_REQ_ERR);
}

/* All bytes are there; a message that tells the peer needs a receive. */
static void tell(fake_qp *q, fake_qp *peer, fake_send *s, double now)
{
    fake_receive r;
    fake_spans from;
    if (is_send(s) && !local_spans(q, s, &from)) {
        failed(s, IBV_WC_LOC_PROT_ERR);
        return;
    }
    if (!fake_receives_take(fake_qp_receives(peer), &r)) {
        not_ready(q, peer, s, now);
        return;
    }
    q->naks = 0;
    receive(peer, s, &from, &r);
}

/* ---- Phases ---- */

/* A read is judged before what comes after it may overtake it. */
static void begin(const fake_qp *q, fake_qp *peer, fake_send *s)
{
    const bool is_read = s->wr.opcode == IBV_WR_RDMA_READ;
    fake_spans local, remote;
    establish(peer);
    if (s->bytes > MOST_MESSAGE)
        failed(s, IBV_WC_LOC_LEN_ERR);
    else if (is_read && q->attr.max_rd_atomic == 0)
        failed(s, IBV_WC_LOC_QP_OP_ERR);
    else if ((is_read && peer->attr.max_dest_rd_atomic == 0) ||
             (q->attr.path_mtu != peer->attr.path_mtu && s->bytes > fake_mtu_bytes(IBV_MTU_256)))
        refused(s, peer, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    else if (!is_read || s->bytes == 0 || find_memory(q, peer, s, &local, &remote))
        s->phase = s->bytes == 0 || is_send(s) ? LANDED : MOVING;
}

/* A real adapter acknowledges what has landed before its queue pair can be ended, so the peer may
 * be gone; but the acknowledgement does not get through a cut. */
static bool is_acknowledged(const fake_qp *q, const fake_send *s)
{
    const fake_qp *peer = fake_qp_find(q->attr.dest_qp_num);
    return s->phase == LANDED && needs_no_receive(s) && !device_of(q)->cut &&
           (peer == NULL || !device_of(peer)->cut);
}

void fake_send_advance(fake_qp *q, fake_send *s, double now)
{
    if (now < s->not_before) {
        q->wake_at = s->not_before;
        return;
    }
    if (is_acknowledged(q, s)) {
        s->phase = DONE;
        return;
    }
    fake_qp *peer = reach(q);
    if (peer == NULL) {
        wait_for_peer(q, s, now);
        return;
    }
    q->unheard_since = 0;
    if (s->phase == POSTED)
        begin(q, peer, s);
    else if (s->phase == MOVING)
        move(q, peer, s);
    else
        tell(q, peer, s, now);
}
