/* SPDX-License-Identifier: Apache-2.0
 * Waking threads that sleep; and whether the progress thread sleeps on all that works wait for. */
#include "sleeper.h"

#include <stdlib.h>

ring_status sleeper_new(ring_comm *comm)
{
    struct sleeper *s = calloc(1, sizeof *s);
    if (s == NULL)
        return fail(RING_ERR_MEMORY, "creating the waiter");
    pthread_mutex_init(&s->lock, NULL);
    wakers_open();
    comm->sleeper = s;
    return RING_OK;
}

void sleeper_free(ring_comm *comm)
{
    if (comm->sleeper == NULL)
        return;
    pthread_mutex_destroy(&comm->sleeper->lock);
    free(comm->sleeper);
    wakers_close();
}

/* The nap is listed before `wakes` is read, and sleeper_wake() does the reverse. */
bool sleeper_begin(ring_comm *comm, nap *n, const waker *by)
{
    struct sleeper *s = comm->sleeper;
    pthread_mutex_lock(&s->lock);
    *n = (nap){.next = s->naps, .by = by};
    s->naps = n;
    pthread_mutex_unlock(&s->lock);
    return by != NULL && atomic_load(&comm->wakes) == comm->wakes_seen;
}

void sleeper_end(ring_comm *comm, const nap *n)
{
    struct sleeper *s = comm->sleeper;
    pthread_mutex_lock(&s->lock);
    nap **at = &s->naps;
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    pthread_mutex_unlock(&s->lock);
}

void sleeper_wake(void *context)
{
    ring_comm *comm = context;
    struct sleeper *s = comm->sleeper;
    atomic_fetch_add(&comm->wakes, 1);
    pthread_mutex_lock(&s->lock);
    for (const nap *n = s->naps; n != NULL; n = n->next)
        if (n->by != NULL)
            waker_wake(n->by);
    pthread_mutex_unlock(&s->lock);
}

void sleeper_stir(ring_comm *comm)
{
    if (comm->sleeper->callers > 0)
        sleeper_wake(comm);
}

/* Marks the channels that the progress thread sleeps on. */
void sleeper_watch_all(ring_comm *comm)
{
    comm->watched = true;
    comm->watch_mark++;
    for (int32_t i = 0; i < comm->channels.active_count; i++)
        comm->channels.active[i]->watch_mark = comm->watch_mark;
    for (channel *c = comm->greeting; c != NULL; c = c->next_greeting)
        c->watch_mark = comm->watch_mark;
}

/* A link is armed for frames after armed_at: once a frame was taken it is not armed for the
 * next. */
static bool is_watched(const channel *c)
{
    return c->watch_mark == c->comm->watch_mark && c->armed_at == c->link->frames_received &&
           (c->armed_out || !(channel_wants_out(c) || channel_holds_frames(c)));
}

bool sleeper_watches_all(const ring_comm *comm)
{
    if (!comm->watched)
        return false;
    if (comm->failing) /* the verdict wakes */
        return true;
    for (const work *w = comm->held; w != NULL; w = w->behind)
        if (!work_is_gated(w))
            return false;
    for (int32_t i = 0; i < comm->channels.active_count; i++)
        if (!is_watched(comm->channels.active[i]))
            return false;
    for (const channel *c = comm->greeting; c != NULL; c = c->next_greeting)
        if (!is_watched(c))
            return false;
    return true;
}
