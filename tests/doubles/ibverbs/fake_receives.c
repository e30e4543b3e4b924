/* SPDX-License-Identifier: Apache-2.0
 * Implements receive queues, shared or of one queue pair. A place becomes free when the completion
 * of its receive is polled. */
#include "fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static fake_receives *queues;

bool fake_receives_open(fake_receives *queue, uint32_t capacity, uint32_t most_sges)
{
    static uint64_t ids;
    queue->list = calloc(capacity > 0 ? capacity : 1, sizeof *queue->list);
    queue->capacity = capacity;
    queue->most_sges = most_sges;
    queue->id = ++ids;
    queue->next = queues;
    queues = queue;
    return queue->list != NULL;
}

void fake_receives_close(fake_receives *queue)
{
    fake_receives **at = &queues;
    while (*at != queue)
        at = &(*at)->next;
    *at = queue->next;
    free(queue->list);
}

bool fake_receives_take(fake_receives *queue, fake_receive *out)
{
    if (queue->taken == queue->posted)
        return false;
    *out = queue->list[queue->taken++ % queue->capacity];
    return true;
}

void fake_receives_free_one(uint64_t id)
{
    fake_receives *q = queues;
    while (q != NULL && q->id != id)
        q = q->next;
    if (q != NULL && q->freed < q->taken)
        q->freed++;
}

static int post_one(fake_receives *queue, const struct ibv_recv_wr *wr)
{
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > queue->most_sges)
        return EINVAL;
    if (queue->posted - queue->freed == queue->capacity)
        return ENOMEM;
    fake_receive *r = &queue->list[queue->posted++ % queue->capacity];
    r->wr_id = wr->wr_id;
    r->sges = wr->num_sge;
    for (int i = 0; i < r->sges; i++)
        r->sge[i] = wr->sg_list[i];
    return 0;
}

int fake_receives_post(fake_receives *queue, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    int error = 0;
    for (; error == 0 && wr != NULL; wr = wr->next) {
        error = post_one(queue, wr);
        if (error != 0)
            *bad = wr;
    }
    return error;
}

int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    fake_qp *q = (fake_qp *)(void *)qp;
    int error = fake_failure("post_recv");
    fake_lock();
    if (error == 0 && (qp->srq != NULL || q->attr.qp_state == IBV_QPS_RESET))
        error = EINVAL;
    if (error != 0)
        *bad = wr;
    else
        error = fake_receives_post(&q->receives, wr, bad);
    if (fake_qp_has_work(q)) /* in the error state they come back at once */
        fake_adapter_add(q);
    fake_unlock();
    return error;
}

/* ---- Shared ---- */

int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    int error = fake_failure("post_srq_recv");
    if (error != 0) {
        *bad = wr;
        return error;
    }
    fake_lock();
    error = fake_receives_post(&((fake_srq *)(void *)srq)->receives, wr, bad);
    fake_unlock();
    return error;
}

static void attach(fake_srq *s, struct ibv_pd *pd)
{
    static uint32_t handles;
    s->base.context = pd->context;
    s->base.pd = pd;
    s->base.handle = ++handles;
    pthread_mutex_init(&s->base.mutex, NULL);
    pthread_cond_init(&s->base.cond, NULL);
    ((fake_domain *)(void *)pd)->users++;
    fake_context_of(pd->context)->users++;
    fake_counts.receive_queues++;
}

static fake_srq *new_shared(struct ibv_pd *pd, const struct ibv_srq_attr *attr)
{
    fake_srq *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    fake_lock();
    if (fake_receives_open(&s->receives, attr->max_wr, attr->max_sge)) {
        attach(s, pd);
    } else {
        fake_receives_close(&s->receives);
        free(s);
        s = NULL;
    }
    fake_unlock();
    return s;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    const struct ibv_srq_attr *attr = &init->attr;
    if (fake_failure("create_srq") != 0)
        return NULL;
    if (attr->max_wr == 0 || attr->max_wr > fake_settings_get()->most_wrs ||
        attr->max_sge > MOST_SGES) {
        errno = EINVAL;
        return NULL;
    }
    fake_srq *s = new_shared(pd, attr);
    if (s == NULL)
        return NULL;
    s->base.srq_context = init->srq_context;
    return &s->base;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
    fake_srq *s = (fake_srq *)(void *)srq;
    fake_lock();
    const bool busy = s->users > 0;
    if (!busy) {
        fake_receives_close(&s->receives);
        ((fake_domain *)(void *)srq->pd)->users--;
        fake_context_of(srq->context)->users--;
        fake_counts.receive_queues--;
    }
    fake_unlock();
    if (busy)
        return EBUSY;
    pthread_mutex_destroy(&srq->mutex);
    pthread_cond_destroy(&srq->cond);
    free(s);
    return 0;
}
