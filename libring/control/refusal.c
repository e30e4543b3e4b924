/* SPDX-License-Identifier: Apache-2.0
 * The latest refusals are kept, and passed on once a connection. Each rank numbers its own, so that
 * one that comes back, or by two ways, goes no further. */
#include "refusal.h"

static const control_refusal *refusal_at(const membership *m, int number)
{
    return &m->refusals[number % CONTROL_REFUSALS_KEPT].body.refusal;
}

static int oldest_kept(const membership *m)
{
    return m->refusal_count > CONTROL_REFUSALS_KEPT ? m->refusal_count - CONTROL_REFUSALS_KEPT
                                                    : 0;
}

static void keep(membership *m, const control_message *message)
{
    m->refusals_of[message->rank] = message->count;
    m->refusals[m->refusal_count++ % CONTROL_REFUSALS_KEPT] = *message;
    membership_flush(m);
}

void refusal_hear(membership *m, const control_message *message)
{
    if (message->count <= m->refusals_of[message->rank])
        return; /* it came before, by another way */
    keep(m, message);
    if (m->on_refusal != NULL)
        m->on_refusal(m->on_refusal_context, message->rank, &message->body.refusal);
}

bool refusal_speak(membership *m, connection *c, control_message *out)
{
    if (!c->edge || m->state < STATE_RUNNING)
        return false;
    if (c->told_refusals < oldest_kept(m))
        c->told_refusals = oldest_kept(m);
    if (c->told_refusals == m->refusal_count)
        return false;
    *out = m->refusals[c->told_refusals++ % CONTROL_REFUSALS_KEPT];
    return true;
}

void control_set_refusal_sink(control_world *world, control_refusal_sink *sink, void *context)
{
    membership *m = membership_of(world);
    control_lock();
    m->on_refusal = sink;
    m->on_refusal_context = context;
    for (int i = oldest_kept(m); sink != NULL && i < m->refusal_count; i++)
        sink(context, m->refusals[i % CONTROL_REFUSALS_KEPT].rank, refusal_at(m, i));
    control_unlock();
}

void control_refuse(control_world *world, const control_refusal *refusal)
{
    control_message message;
    membership *m = membership_of(world);
    control_message_begin(&message, CONTROL_REFUSAL, world->rank);
    message.body.refusal = *refusal;
    control_lock();
    message.count = m->refusals_of[world->rank] + 1;
    if (m->served)
        keep(m, &message);
    control_unlock();
}
