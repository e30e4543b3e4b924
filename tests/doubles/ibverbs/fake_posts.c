/* SPDX-License-Identifier: Apache-2.0
 * Posting to the send queue. A place is taken until a completion that covers it is polled. */
#include "fake.h"

#include <errno.h>
#include <string.h>

static size_t length_of(const struct ibv_send_wr *wr)
{
    size_t bytes = 0;
    for (int i = 0; i < wr->num_sge; i++)
        bytes += wr->sg_list[i].length;
    return bytes;
}

static bool known(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
           opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
}

static int refused(const fake_qp *q, const struct ibv_send_wr *wr)
{
    const struct ibv_qp_cap *cap = &q->attr.cap;
    const bool inlined = (wr->send_flags & IBV_SEND_INLINE) != 0;
    if (q->attr.qp_state != IBV_QPS_RTS && q->attr.qp_state != IBV_QPS_ERR)
        return EINVAL;
    if (!known(wr->opcode) || wr->num_sge < 0 || (uint32_t)wr->num_sge > cap->max_send_sge)
        return EINVAL;
    if (inlined && (wr->opcode == IBV_WR_RDMA_READ || length_of(wr) > cap->max_inline_data))
        return EINVAL;
    return q->posted - q->freed == cap->max_send_wr ? ENOMEM : 0;
}

static void take_inline(fake_qp *q, fake_send *s)
{
    size_t at = 0;
    s->inlined = q->inline_data + (size_t)(s - q->sends) * q->attr.cap.max_inline_data;
    for (int i = 0; i < s->wr.num_sge; i++) {
        const struct ibv_sge *sge = &s->sge[i];
        if (sge->length > 0)
            memcpy(s->inlined + at, (const void *)(uintptr_t)sge->addr, sge->length);
        at += sge->length;
    }
    fake_counts.inlined++;
}

static void count(enum ibv_wr_opcode opcode)
{
    fake_counts.writes += opcode == IBV_WR_RDMA_WRITE;
    fake_counts.immediates += opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    fake_counts.reads += opcode == IBV_WR_RDMA_READ;
    fake_counts.sends += opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
}

/* Between none and twice the mean. */
static double lateness(void)
{
    return fake_settings_get()->delay * (double)(fake_roll() % 2001) / 1000;
}

static void take(fake_qp *q, const struct ibv_send_wr *wr)
{
    fake_send *s = fake_qp_send(q, q->posted++);
    memset(s, 0, offsetof(fake_send, sge));
    memset(&s->inlined, 0, sizeof *s - offsetof(fake_send, inlined));
    s->wr = *wr;
    s->wr.next = NULL;
    s->wr.sg_list = NULL;
    for (int i = 0; i < wr->num_sge; i++)
        s->sge[i] = wr->sg_list[i];
    s->bytes = length_of(wr);
    if (q->init.sq_sig_all)
        s->wr.send_flags |= IBV_SEND_SIGNALED;
    if ((wr->send_flags & IBV_SEND_INLINE) != 0)
        take_inline(q, s);
    if (fake_settings_get()->delay > 0)
        s->not_before = fake_now() + lateness();
    count(wr->opcode);
}

static int post_list(fake_qp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    for (; wr != NULL; wr = wr->next) {
        const int error = refused(q, wr);
        if (error != 0) {
            *bad = wr;
            return error;
        }
        take(q, wr);
    }
    return 0;
}

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    fake_qp *q = (fake_qp *)(void *)qp;
    int error = fake_failure("post_send");
    if (error != 0) {
        *bad = wr;
        return error;
    }
    fake_lock();
    error = post_list(q, wr, bad);
    if (fake_qp_has_work(q))
        fake_adapter_add(q);
    fake_unlock();
    return error;
}
