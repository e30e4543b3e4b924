/* SPDX-License-Identifier: Apache-2.0
 * The states of a queue pair, and what each change needs. */
#include "fake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

typedef struct transition {
    enum ibv_qp_state from, to;
    int required, optional;
} transition;

/* For RC, as in the InfiniBand specification's table of state changes. */
static const transition transitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
};

static bool mask_fits(enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    mask &= ~IBV_QP_STATE;
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return mask == 0;
    for (size_t i = 0; i < sizeof transitions / sizeof *transitions; i++) {
        const transition *t = &transitions[i];
        if (t->from == from && t->to == to)
            return (mask & t->required) == t->required && (mask & ~t->required & ~t->optional) == 0;
    }
    return false;
}

/* ---- Values ---- */

static bool address_fits(const fake_qp *q, const struct ibv_ah_attr *ah)
{
    struct ibv_gid_entry entry;
    if (!fake_device_has_port(ah->port_num))
        return false;
    if (!ah->is_global)
        return fake_settings_get()->infiniband && ah->dlid != 0;
    return fake_device_gid_entry(fake_context_of(q->base.context)->device, ah->grh.sgid_index,
                                 &entry);
}

static bool access_fits(unsigned access)
{
    return (access & ~(unsigned)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)) == 0;
}

static bool values_fit(const fake_qp *q, const struct ibv_qp_attr *a, int mask)
{
    const uint32_t most_reads = fake_settings_get()->most_reads;
    return (!(mask & IBV_QP_PORT) || fake_device_has_port(a->port_num)) &&
           (!(mask & IBV_QP_PKEY_INDEX) || a->pkey_index == 0) &&
           (!(mask & IBV_QP_ACCESS_FLAGS) || access_fits(a->qp_access_flags)) &&
           (!(mask & IBV_QP_AV) || address_fits(q, &a->ah_attr)) &&
           (!(mask & IBV_QP_DEST_QPN) || (a->dest_qp_num > 0 && a->dest_qp_num < 1u << 24)) &&
           (!(mask & IBV_QP_PATH_MTU) ||
            (a->path_mtu >= IBV_MTU_256 && a->path_mtu <= fake_mtu())) &&
           (!(mask & IBV_QP_RQ_PSN) || a->rq_psn < 1u << 24) &&
           (!(mask & IBV_QP_SQ_PSN) || a->sq_psn < 1u << 24) &&
           (!(mask & IBV_QP_TIMEOUT) || a->timeout <= 31) &&
           (!(mask & IBV_QP_RETRY_CNT) || a->retry_cnt <= 7) &&
           (!(mask & IBV_QP_RNR_RETRY) || a->rnr_retry <= 7) &&
           (!(mask & IBV_QP_MIN_RNR_TIMER) || a->min_rnr_timer <= 31) &&
           (!(mask & IBV_QP_MAX_QP_RD_ATOMIC) || a->max_rd_atomic <= most_reads) &&
           (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC) || a->max_dest_rd_atomic <= most_reads);
}

#define TAKE(bit, field) \
    do { \
        if (mask & (bit)) \
            to->field = from->field; \
    } while (0)

static void take_values(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
    TAKE(IBV_QP_PORT, port_num);
    TAKE(IBV_QP_PKEY_INDEX, pkey_index);
    TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
    TAKE(IBV_QP_AV, ah_attr);
    TAKE(IBV_QP_DEST_QPN, dest_qp_num);
    TAKE(IBV_QP_PATH_MTU, path_mtu);
    TAKE(IBV_QP_RQ_PSN, rq_psn);
    TAKE(IBV_QP_SQ_PSN, sq_psn);
    TAKE(IBV_QP_TIMEOUT, timeout);
    TAKE(IBV_QP_RETRY_CNT, retry_cnt);
    TAKE(IBV_QP_RNR_RETRY, rnr_retry);
    TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
}

/* ---- Changes ---- */

/* Drops posted requests without completions. */
static void reset(fake_qp *q)
{
    const struct ibv_qp_cap cap = q->attr.cap;
    fake_adapter_drop(q);
    memset(&q->attr, 0, sizeof q->attr);
    q->attr.cap = cap;
    q->retired = q->freed = q->posted;
    q->receives.taken = q->receives.freed = q->receives.posted;
    q->wake_at = q->unheard_since = 0;
    q->naks = 0;
    q->established = false;
}

static int change(fake_qp *q, const struct ibv_qp_attr *attr, int mask)
{
    const enum ibv_qp_state from = q->attr.qp_state;
    const enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
    if ((mask & IBV_QP_CUR_STATE) != 0 && attr->cur_qp_state != from)
        return EINVAL;
    if (!mask_fits(from, to, mask) || !values_fit(q, attr, mask))
        return EINVAL;
    take_values(&q->attr, attr, mask);
    if (to == IBV_QPS_ERR)
        fake_qp_break(q);
    if (to == IBV_QPS_RESET)
        reset(q);
    q->attr.qp_state = to;
    return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    fake_qp *q = (fake_qp *)(void *)qp;
    int error = fake_failure("modify_qp");
    if (error == 0) {
        fake_lock();
        error = change(q, attr, mask);
        if (error == 0 && (mask & IBV_QP_STATE) != 0)
            qp->state = attr->qp_state;
        fake_unlock();
    }
    if (error != 0)
        errno = error;
    return error;
}
