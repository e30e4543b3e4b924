/* SPDX-License-Identifier: Apache-2.0
 * Queue pairs from their creation to their end. Numbers are unique in the process, and come again
 * as late as keys do. */
#include "fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static fake_qp *pairs[MOST_SLOTS]; /* by number */
static uint32_t numbers = 16;

fake_qp *fake_qp_find(uint32_t number)
{
    fake_qp *q = pairs[number % MOST_SLOTS];
    return q != NULL && q->base.qp_num == number ? q : NULL;
}

static bool take_number(fake_qp *q)
{
    for (int i = 0; i < MOST_SLOTS; i++) {
        numbers = (numbers + 1) % (1u << 24);
        if (numbers < 2 || pairs[numbers % MOST_SLOTS] != NULL)
            continue;
        q->base.qp_num = q->base.handle = numbers;
        pairs[numbers % MOST_SLOTS] = q;
        return true;
    }
    return false;
}

/* ---- Creation ---- */

static int refused(const struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
    const fake_settings *s = fake_settings_get();
    const struct ibv_qp_cap *cap = &init->cap;
    if (init->qp_type != IBV_QPT_RC)
        return EOPNOTSUPP;
    if (init->send_cq == NULL || init->recv_cq == NULL || init->send_cq->context != pd->context ||
        init->recv_cq->context != pd->context)
        return EINVAL;
    if (cap->max_send_wr == 0 || cap->max_send_wr > s->most_wrs || cap->max_send_sge > MOST_SGES)
        return EINVAL;
    if (init->srq == NULL && (cap->max_recv_wr > s->most_wrs || cap->max_recv_sge > MOST_SGES))
        return EINVAL;
    return s->strict_inline && cap->max_inline_data > s->most_inline ? EINVAL : 0;
}

static void grant(struct ibv_qp_init_attr *init)
{
    const uint32_t most = fake_settings_get()->most_inline;
    struct ibv_qp_cap *cap = &init->cap;
    if (cap->max_inline_data > most)
        cap->max_inline_data = most;
    if (cap->max_send_sge == 0)
        cap->max_send_sge = 1;
    if (init->srq != NULL)
        cap->max_recv_wr = cap->max_recv_sge = 0;
}

static fake_qp *new_pair(struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
    const size_t wrs = init->cap.max_send_wr;
    fake_qp *q = calloc(1, sizeof *q);
    if (q == NULL)
        return NULL;
    q->init = *init;
    q->sends = calloc(wrs, sizeof *q->sends);
    q->inline_data = calloc(wrs, init->cap.max_inline_data > 0 ? init->cap.max_inline_data : 1);
    q->attr.qp_state = IBV_QPS_RESET;
    q->attr.cap = init->cap;
    q->base.context = pd->context;
    q->base.qp_context = init->qp_context;
    q->base.pd = pd;
    q->base.send_cq = init->send_cq;
    q->base.recv_cq = init->recv_cq;
    q->base.srq = init->srq;
    q->base.qp_type = init->qp_type;
    q->base.state = IBV_QPS_RESET;
    pthread_mutex_init(&q->base.mutex, NULL);
    pthread_cond_init(&q->base.cond, NULL);
    return q;
}

static void free_pair(fake_qp *q)
{
    pthread_mutex_destroy(&q->base.mutex);
    pthread_cond_destroy(&q->base.cond);
    free(q->sends);
    free(q->inline_data);
    free(q);
}

static void use(const fake_qp *q, int sign)
{
    ((fake_domain *)(void *)q->base.pd)->users += sign;
    ((fake_cq *)(void *)q->base.send_cq)->users += sign;
    ((fake_cq *)(void *)q->base.recv_cq)->users += sign;
    if (q->base.srq != NULL)
        ((fake_srq *)(void *)q->base.srq)->users += sign;
    fake_context_of(q->base.context)->users += sign;
    fake_counts.queue_pairs += sign > 0 ? 1 : UINT64_MAX; /* -1 */
}

static bool attach(fake_qp *q)
{
    const struct ibv_qp_cap *cap = &q->attr.cap;
    const bool opened = fake_receives_open(&q->receives, cap->max_recv_wr, cap->max_recv_sge);
    if (opened && q->sends != NULL && q->inline_data != NULL && take_number(q)) {
        use(q, 1);
        return true;
    }
    fake_receives_close(&q->receives);
    return false;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    if (fake_failure("create_qp") != 0)
        return NULL;
    const int error = refused(pd, init);
    if (error != 0) {
        errno = error;
        return NULL;
    }
    grant(init);
    fake_qp *q = new_pair(pd, init);
    if (q == NULL)
        return NULL;
    fake_lock();
    const bool done = attach(q);
    fake_unlock();
    if (done)
        return &q->base;
    free_pair(q);
    errno = ENOMEM;
    return NULL;
}

/* ---- Its end ---- */

int ibv_destroy_qp(struct ibv_qp *qp)
{
    fake_qp *q = (fake_qp *)(void *)qp;
    fake_lock();
    if (q->unacked_async > 0)
        fake_misuse("would wait for ever for events to be acknowledged", "ibv_destroy_qp");
    fake_events_drop(&fake_context_of(qp->context)->events, q);
    fake_adapter_drop(q);
    fake_receives_close(&q->receives);
    pairs[qp->qp_num % MOST_SLOTS] = NULL;
    use(q, -1);
    fake_unlock();
    free_pair(q);
    return 0;
}

void fake_qp_break(fake_qp *q)
{
    if (q->attr.qp_state == IBV_QPS_ERR || q->attr.qp_state == IBV_QPS_RESET)
        return;
    q->attr.qp_state = IBV_QPS_ERR;
    q->wake_at = 0;
    if (q->base.srq != NULL)
        fake_async_event(q->base.context, IBV_EVENT_QP_LAST_WQE_REACHED, q);
    if (fake_qp_has_work(q))
        fake_adapter_add(q);
}

void fake_qps_break_with(const struct ibv_cq *cq)
{
    for (int i = 0; i < MOST_SLOTS; i++) {
        fake_qp *q = pairs[i];
        if (q == NULL || (q->base.send_cq != cq && q->base.recv_cq != cq))
            continue;
        fake_async_event(q->base.context, IBV_EVENT_QP_FATAL, q);
        fake_qp_break(q);
    }
}

/* ---- Its requests ---- */

fake_send *fake_qp_send(const fake_qp *q, uint64_t index)
{
    return &q->sends[index % q->attr.cap.max_send_wr];
}

fake_receives *fake_qp_receives(fake_qp *q)
{
    return q->base.srq != NULL ? &((fake_srq *)(void *)q->base.srq)->receives : &q->receives;
}

void fake_qp_free_sends(uint32_t number, uint64_t up_to)
{
    fake_qp *q = fake_qp_find(number);
    if (q != NULL && up_to > q->freed)
        q->freed = up_to;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init)
{
    const fake_qp *q = (fake_qp *)(void *)qp;
    const int error = fake_failure("query_qp");
    (void)mask; /* as the kernel does, it fills in all */
    if (error != 0)
        return error;
    fake_lock();
    *attr = q->attr;
    attr->cur_qp_state = q->attr.qp_state;
    *init = q->init;
    qp->state = q->attr.qp_state;
    fake_unlock();
    return 0;
}
