/* SPDX-License-Identifier: Apache-2.0
 * Queues of messages, linked through one array. */
#include "mail.h"

#include <stdlib.h>

ring_status mail_open(mail *m, int ranks)
{
    const size_t pairs = (size_t)ranks * (size_t)ranks;
    *m = (mail){.ranks = ranks, .queues = malloc(pairs * sizeof *m->queues)};
    if (m->queues == NULL)
        return fail(RING_ERR_MEMORY, "running the plans of %d ranks", ranks);
    for (size_t i = 0; i < pairs; i++)
        m->queues[i] = (mail_queue){.first = MAIL_NONE, .last = MAIL_NONE, .round = MAIL_NONE};
    return RING_OK;
}

void mail_close(mail *m)
{
    free(m->queues);
    free(m->messages);
    *m = (mail){0};
}

mail_queue *mail_between(const mail *m, int from, int to)
{
    return &m->queues[(size_t)from * (size_t)m->ranks + (size_t)to];
}

static ring_status make_room(mail *m)
{
    if (m->count < m->cap)
        return RING_OK;
    const int32_t cap = m->cap > 0 ? 2 * m->cap : 256;
    mail_message *messages = realloc(m->messages, (size_t)cap * sizeof *messages);
    if (messages == NULL)
        return fail(RING_ERR_MEMORY, "running the plans of %d ranks", m->ranks);
    m->messages = messages;
    m->cap = cap;
    return RING_OK;
}

ring_status mail_post(mail *m, const mail_message *message)
{
    RING_TRY(make_room(m));
    mail_queue *queue = mail_between(m, message->from, message->to);
    const int32_t id = m->count++;
    m->messages[id] = *message;
    m->messages[id].taker = m->messages[id].next = MAIL_NONE;
    if (queue->first == MAIL_NONE)
        queue->first = id;
    else
        m->messages[queue->last].next = id;
    queue->last = id;
    queue->sent += message->ack ? 0 : 1;
    return RING_OK;
}

mail_message *mail_first(const mail *m, int from, int to)
{
    const int32_t id = mail_between(m, from, to)->first;
    return id != MAIL_NONE ? &m->messages[id] : NULL;
}

void mail_take(mail *m, mail_message *first, int32_t taker)
{
    mail_queue *queue = mail_between(m, first->from, first->to);
    queue->first = first->next;
    queue->taken += first->ack ? 0 : 1;
    first->taker = taker;
}
