/* SPDX-License-Identifier: Apache-2.0
 * Completion queues and their channels. */
#include "fake.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- Channels ---- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    fake_channel *c = fake_failure("create_comp_channel") == 0 ? calloc(1, sizeof *c) : NULL;
    if (c == NULL)
        return NULL;
    if (!fake_events_open(&c->events)) {
        free(c);
        return NULL;
    }
    c->base.context = context;
    c->base.fd = c->events.fd;
    fake_lock();
    fake_context_of(context)->users++;
    fake_counts.channels++;
    fake_unlock();
    return &c->base;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    fake_channel *c = (fake_channel *)(void *)channel;
    fake_lock();
    const bool busy = channel->refcnt > 0;
    if (!busy) {
        fake_context_of(channel->context)->users--;
        fake_counts.channels--;
    }
    fake_unlock();
    if (busy)
        return EBUSY;
    fake_events_close(&c->events);
    free(c);
    return 0;
}

/* ---- Queues ---- */

static fake_cq *new_queue(struct ibv_context *context, int entries, void *cq_context,
                          struct ibv_comp_channel *channel)
{
    fake_cq *q = calloc(1, sizeof *q);
    if (q == NULL || (q->list = calloc((size_t)entries, sizeof *q->list)) == NULL) {
        free(q);
        return NULL;
    }
    q->base.context = context;
    q->base.channel = channel;
    q->base.cq_context = cq_context;
    q->base.cqe = entries;
    pthread_mutex_init(&q->base.mutex, NULL);
    pthread_cond_init(&q->base.cond, NULL);
    return q;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context,
                             struct ibv_comp_channel *channel, int vector)
{
    static uint32_t handles;
    if (fake_failure("create_cq") != 0)
        return NULL;
    if (entries < 1 || entries > 1 << 20 || vector < 0 || vector >= context->num_comp_vectors ||
        (channel != NULL && channel->context != context)) {
        errno = EINVAL;
        return NULL;
    }
    fake_cq *q = new_queue(context, entries, cq_context, channel);
    if (q == NULL)
        return NULL;
    fake_lock();
    q->base.handle = ++handles;
    if (channel != NULL)
        channel->refcnt++;
    fake_context_of(context)->users++;
    fake_counts.completion_queues++;
    fake_unlock();
    return &q->base;
}

static void free_queue(fake_cq *q)
{
    pthread_mutex_destroy(&q->base.mutex);
    pthread_cond_destroy(&q->base.cond);
    free(q->list);
    free(q);
}

/* Drops events not read; events read must be acknowledged, or the real one waits. */
static void detach(fake_cq *q)
{
    fake_context *c = fake_context_of(q->base.context);
    if (q->unacked > 0 || q->unacked_async > 0)
        fake_misuse("would wait for ever for events to be acknowledged", "ibv_destroy_cq");
    fake_events_drop(&c->events, q);
    if (q->base.channel != NULL) {
        fake_events_drop(&((fake_channel *)(void *)q->base.channel)->events, q);
        q->base.channel->refcnt--;
    }
    c->users--;
    fake_counts.completion_queues--;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    fake_cq *q = (fake_cq *)(void *)cq;
    fake_lock();
    const bool busy = q->users > 0;
    if (!busy)
        detach(q);
    fake_unlock();
    if (busy)
        return EBUSY;
    free_queue(q);
    return 0;
}

/* ---- Entries ---- */

static void notify(fake_cq *q, bool solicited)
{
    if (q->armed == UNARMED || (q->armed == ARMED_SOLICITED && !solicited))
        return;
    q->armed = UNARMED;
    if (q->base.channel != NULL)
        fake_events_add(&((fake_channel *)(void *)q->base.channel)->events, q, 0);
}

static void overrun(fake_cq *q)
{
    q->dead = true;
    fake_async_event(q->base.context, IBV_EVENT_CQ_ERR, q);
    fake_qps_break_with(&q->base);
}

void fake_cq_add(struct ibv_cq *cq, const fake_completion *completion)
{
    fake_cq *q = (fake_cq *)(void *)cq;
    if (q->dead)
        return;
    if (q->count == cq->cqe) {
        overrun(q);
        return;
    }
    q->list[(q->first + q->count) % cq->cqe] = *completion;
    q->count++;
    fake_counts.completions++;
    notify(q, completion->solicited || completion->wc.status != IBV_WC_SUCCESS);
}

static void take_first(fake_cq *q, struct ibv_wc *wc)
{
    const fake_completion *c = &q->list[q->first];
    *wc = c->wc;
    if (c->frees != 0)
        fake_qp_free_sends(c->wc.qp_num, c->frees);
    if (c->receives != 0)
        fake_receives_free_one(c->receives);
    q->first = (q->first + 1) % q->base.cqe;
    q->count--;
}

int fake_poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    fake_cq *q = (fake_cq *)(void *)cq;
    int n = 0;
    if (fake_failure("poll_cq") != 0)
        return -1;
    if (atomic_load(&q->count) == 0) /* the usual case, without the lock */
        return 0;
    fake_lock();
    while (n < most && q->count > 0)
        take_first(q, &wc[n++]);
    fake_unlock();
    return n;
}

/* ---- Events ---- */

int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    fake_cq *q = (fake_cq *)(void *)cq;
    const int error = fake_failure("req_notify_cq");
    if (error != 0)
        return error;
    fake_lock();
    if (!solicited_only)
        q->armed = ARMED;
    else if (q->armed == UNARMED)
        q->armed = ARMED_SOLICITED;
    fake_unlock();
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    fake_event taken;
    if (fake_failure("get_cq_event") != 0)
        return -1;
    if (!fake_events_take(&((fake_channel *)(void *)channel)->events, &taken))
        return -1;
    fake_cq *q = taken.of;
    q->unacked++;
    *cq = &q->base;
    *cq_context = q->base.cq_context;
    fake_unlock();
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
    fake_cq *q = (fake_cq *)(void *)cq;
    fake_lock();
    if (count > q->unacked)
        fake_misuse("acknowledges more than was taken", "ibv_ack_cq_events");
    q->unacked -= count;
    fake_unlock();
}
