/* SPDX-License-Identifier: Apache-2.0
 * Implements the queues of messages as lists that are linked through one array of all messages. */
#include "queues.h"

#include "array.h"

ring_status queues_open(queues *q, int ranks)
{
    const size_t pairs = (size_t)ranks * (size_t)ranks;
    *q = (queues){.ranks = ranks, .pairs = malloc(pairs * sizeof *q->pairs)};
    if (q->pairs == NULL)
        return fail(RING_ERR_MEMORY, "running the plans of %d rank%s", ranks, plural(ranks));
    for (size_t i = 0; i < pairs; i++)
        q->pairs[i] = (queue){.first = QUEUE_NONE,
                              .last = QUEUE_NONE,
                              .held = QUEUE_NONE,
                              .round = QUEUE_NONE};
    return RING_OK;
}

void queues_close(queues *q)
{
    free(q->pairs);
    free(q->messages);
    *q = (queues){0};
}

queue *queue_between(const queues *q, int from, int to)
{
    return &q->pairs[(size_t)from * (size_t)q->ranks + (size_t)to];
}

ring_status queue_post(queues *q, const queue_message *message)
{
    queue_message *messages = array_with_room(q->messages, &q->cap, (int64_t)q->count + 1,
                                              sizeof *messages);
    if (messages == NULL)
        return fail(RING_ERR_MEMORY, "running the plans of %d rank%s", q->ranks, plural(q->ranks));
    q->messages = messages;
    queue *pair = queue_between(q, message->from, message->to);
    const int32_t id = q->count++;
    queue_message *m = &q->messages[id];
    *m = *message;
    m->taker = m->released = m->next = QUEUE_NONE;
    if (pair->last != QUEUE_NONE)
        q->messages[pair->last].next = id;
    pair->first = pair->first == QUEUE_NONE ? id : pair->first;
    pair->held = pair->held == QUEUE_NONE ? id : pair->held;
    pair->last = id;
    pair->sent++;
    return RING_OK;
}

queue_message *queue_first(const queues *q, int from, int to)
{
    const int32_t id = queue_between(q, from, to)->first;
    return id != QUEUE_NONE ? &q->messages[id] : NULL;
}

void queue_take(queues *q, queue_message *first, int32_t taker)
{
    queue *pair = queue_between(q, first->from, first->to);
    pair->first = first->next;
    pair->taken++;
    first->taker = taker;
}

bool queue_is_taken(const queues *q, int from, int to, int back)
{
    const queue *pair = queue_between(q, from, to);
    return pair->taken >= pair->sent - back;
}

queue_message *queue_release(queues *q, int from, int to, int back)
{
    queue *pair = queue_between(q, from, to);
    if (pair->released >= pair->sent - back)
        return NULL;
    queue_message *m = &q->messages[pair->held];
    pair->held = m->next;
    pair->released++;
    return m;
}
