/* SPDX-License-Identifier: Apache-2.0
 * Hardware queues. A device has a few for each priority, and its streams are dealt to them in turn.
 * A copy enters the queue of its stream when it is called, and holds up the later copies of other
 * streams in the same queue until it has ended, even while its own stream is stopped at a wait. */
#include "gpu.h"

static hardware_queue *queue_of(int slot)
{
    const gpu_stream *s = &gpu->streams[slot];
    return gpu_is.queues > 0 && slot > 0 ? &gpu->devices[s->device].queues[s->queue] : NULL;
}

static bool is_copy(const op *o)
{
    return o->kind == OP_COPY || o->kind == OP_SET;
}

static bool is_kernel_or_word(const op *o)
{
    return o->kind == OP_LAUNCH || o->kind == OP_WRITE_VALUE || o->kind == OP_WAIT_VALUE;
}

void queues_begin(void)
{
    for (int i = 0; i < MOST_DEVICES; i++)
        for (int q = 0; q < 2 * MOST_QUEUES; q++)
            gpu->devices[i].queues[q] = (hardware_queue){.first = -1, .last = -1};
}

int queue_deal(int device, bool high)
{
    int *dealt = &gpu->devices[device].dealt[high];
    return gpu_is.queues > 0 ? (*dealt)++ % gpu_is.queues + (high ? MOST_QUEUES : 0) : 0;
}

static void count(gpu_stream *s, const op *o, int by)
{
    if (o->kind != OP_HOST)
        s->pending += by;
    else if (o->replayed)
        s->functions += by;
}

void queue_enter(int slot, op *o)
{
    hardware_queue *q = queue_of(slot);
    const int index = (int)(o - gpu->ops);
    count(&gpu->streams[slot], o, 1);
    if (q == NULL || !is_copy(o))
        return;
    o->next_in_queue = -1;
    if (q->last >= 0)
        gpu->ops[q->last].next_in_queue = index;
    else
        q->first = index;
    q->last = index;
}

/* A copy that ends is the first of its queue. */
void queue_leave(int slot, const op *o)
{
    hardware_queue *q = queue_of(slot);
    count(&gpu->streams[slot], o, -1);
    if (q == NULL || !is_copy(o))
        return;
    q->first = o->next_in_queue;
    q->last = q->first >= 0 ? q->last : -1;
}

const op *queue_holder(int slot, const op *o)
{
    const hardware_queue *q = queue_of(slot);
    if (q == NULL || q->first < 0 || !(is_copy(o) || (gpu_is.strict && is_kernel_or_word(o))))
        return NULL;
    const op *first = &gpu->ops[q->first];
    return first->ticket < o->ticket ? first : NULL;
}
