/* SPDX-License-Identifier: Apache-2.0
 * Keeps the lists of works that wait on a channel, and decides whether an engine turn has to visit
 * the channel. */
#include "channel.h"

#include "comm.h"
#include "tagged_traffic.h"

ring_status channel_await(work *w, channel *c, wait_kind kind, uint64_t number)
{
    work **at = &c->waiting[kind], *last = c->last[kind];
    if (*at != NULL && last->wait.number <= number)
        at = &last->wait.next; /* usually the work goes to the end, so the list is not searched */
    while (*at != NULL && (*at)->wait.number <= number)
        at = &(*at)->wait.next;
    ring_assert(w->wait.on == NULL && !w->result.finished && c->index == w->index);
    ring_assert(kind != WAIT_FRAME || number >= c->received);
    ring_assert(kind != WAIT_ROOM || number >= c->sent);
    w->wait.next = *at;
    *at = w;
    if (w->wait.next == NULL)
        c->last[kind] = w;
    w->wait.on = w->wait.last = c;
    w->wait.kind = kind;
    w->wait.number = number;
    channel_activate(c);
    return RING_IN_PROGRESS;
}

work *channel_ready(channel *c, wait_kind kind)
{
    work *w = c->waiting[kind];
    if (w == NULL || w->wait.number != (kind == WAIT_FRAME ? c->received : c->sent))
        return NULL;
    if (kind == WAIT_FRAME) {
        uint32_t value;
        const _Atomic uint32_t *news = c->link->transport->news(c->link, &value);
        if (news != NULL && atomic_load_explicit(news, memory_order_acquire) != value)
            return NULL;
    }
    c->waiting[kind] = w->wait.next;
    w->wait.on = NULL;
    return w;
}

work *channel_take_free(channel *c)
{
    work *all = c->waiting[WAIT_FREE];
    c->waiting[WAIT_FREE] = NULL;
    for (work *w = all; w != NULL; w = w->wait.next)
        w->wait.on = NULL;
    return all;
}

work *channel_first_waiter(const channel *c)
{
    for (int kind = 0; kind < WAIT_KINDS; kind++)
        if (c->waiting[kind] != NULL)
            return c->waiting[kind];
    if (c->tagged != NULL)
        return tagged_first_waiter(c->tagged);
    return c->posts != NULL ? c->posts->work : NULL;
}

bool channel_wants_out(const channel *c)
{
    return c->posts != NULL || c->waiting[WAIT_ROOM] != NULL || c->waiting[WAIT_FREE] != NULL ||
           (c->tagged != NULL && tagged_wants_out(c->tagged)) || c->proxy_full;
}

bool channel_is_idle(const channel *c)
{
    return c->waiting[WAIT_FRAME] == NULL && !channel_wants_out(c) && !channel_holds_frames(c) &&
           (c->tagged == NULL || !tagged_listens(c->tagged)) && !c->proxy_listens;
}
