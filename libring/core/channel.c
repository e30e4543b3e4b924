/* SPDX-License-Identifier: Apache-2.0
 * The works that wait on a channel, and whether an engine turn has to look at it. */
#include "channel.h"

#include "comm.h"
#include "tagged_traffic.h"

ring_status channel_await(work *w, channel *c, wait_kind kind, uint64_t number)
{
    work **at = &c->waiting[kind], *last = c->last[kind];
    if (*at != NULL && last->number <= number) /* the usual one: no walk */
        at = &last->behind;
    while (*at != NULL && (*at)->number <= number)
        at = &(*at)->behind;
    ring_assert(w->awaits == NULL && !w->finished && c->index == w->index);
    ring_assert(kind != WAIT_FRAME || number >= c->received);
    ring_assert(kind != WAIT_ROOM || number >= c->sent);
    w->behind = *at;
    *at = w;
    if (w->behind == NULL)
        c->last[kind] = w;
    w->awaits = w->suspect = c;
    w->kind = kind;
    w->number = number;
    channel_watch(c);
    return RING_IN_PROGRESS;
}

static bool frame_is_here(const channel *c)
{
    uint32_t value;
    const _Atomic uint32_t *news = c->link->transport->news(c->link, &value);
    return news == NULL || atomic_load_explicit(news, memory_order_acquire) == value;
}

static bool may_go_on(const channel *c, const work *w)
{
    return w->kind == WAIT_FRAME ? w->number == c->received && frame_is_here(c)
                                 : w->number == c->sent;
}

work *channel_ready(channel *c, wait_kind kind)
{
    work *w = c->waiting[kind];
    if (w == NULL || !may_go_on(c, w))
        return NULL;
    c->waiting[kind] = w->behind;
    w->awaits = NULL;
    return w;
}

work *channel_take_free(channel *c)
{
    work *all = c->waiting[WAIT_FREE];
    c->waiting[WAIT_FREE] = NULL;
    for (work *w = all; w != NULL; w = w->behind)
        w->awaits = NULL;
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
           (c->tagged != NULL && tagged_wants_out(c->tagged));
}

bool channel_is_idle(const channel *c)
{
    return c->waiting[WAIT_FRAME] == NULL && !channel_wants_out(c) && !channel_holds_frames(c) &&
           (c->tagged == NULL || !tagged_listens(c->tagged));
}
