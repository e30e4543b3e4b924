/* SPDX-License-Identifier: Apache-2.0
 * Waking threads that sleep; and whether the progress thread sleeps on all that works wait for. */
#include "sleep.h"

#include <stdlib.h>

ring_status sleep_new(ring_comm *comm)
{
    struct sleeping_threads *s = calloc(1, sizeof *s);
    if (s == NULL)
        return fail(RING_ERR_MEMORY, "creating the waiter");
    pthread_mutex_init(&s->lock, NULL);
    wakeup_fds_open();
    comm->sleep.threads = s;
    return RING_OK;
}

void sleep_free(ring_comm *comm)
{
    if (comm->sleep.threads == NULL)
        return;
    pthread_mutex_destroy(&comm->sleep.threads->lock);
    free(comm->sleep.threads);
    wakeup_fds_close();
}

/* The nap is listed before `wakes` is read, and sleep_wake() does the reverse. */
bool sleep_begin(ring_comm *comm, nap *n, const wakeup_fd *by)
{
    struct sleeping_threads *s = comm->sleep.threads;
    pthread_mutex_lock(&s->lock);
    *n = (nap){.next = s->naps, .by = by};
    s->naps = n;
    pthread_mutex_unlock(&s->lock);
    return by != NULL && atomic_load(&comm->sleep.wakes) == comm->sleep.wakes_seen;
}

void sleep_end(ring_comm *comm, const nap *n)
{
    struct sleeping_threads *s = comm->sleep.threads;
    pthread_mutex_lock(&s->lock);
    nap **at = &s->naps;
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    pthread_mutex_unlock(&s->lock);
}

void sleep_wake(void *context)
{
    ring_comm *comm = context;
    struct sleeping_threads *s = comm->sleep.threads;
    atomic_fetch_add(&comm->sleep.wakes, 1);
    pthread_mutex_lock(&s->lock);
    for (const nap *n = s->naps; n != NULL; n = n->next)
        if (n->by != NULL)
            wakeup_fd_signal(n->by);
    pthread_mutex_unlock(&s->lock);
}

void sleep_wake_callers(ring_comm *comm)
{
    if (comm->sleep.threads->callers > 0)
        sleep_wake(comm);
}

/* Marks the channels that the progress thread sleeps on. */
void sleep_watch_all(ring_comm *comm)
{
    comm->sleep.watched = true;
    comm->sleep.watch_mark++;
    for (int32_t i = 0; i < comm->channels.active_count; i++)
        comm->channels.active[i]->watch_mark = comm->sleep.watch_mark;
    for (channel *c = comm->greeting; c != NULL; c = c->next_greeting)
        c->watch_mark = comm->sleep.watch_mark;
}

/* A link is armed for frames after armed_at: once a frame was taken it is not armed for the
 * next. */
static bool is_watched(const channel *c)
{
    return c->watch_mark == c->comm->sleep.watch_mark && c->armed_at == c->link->frames_received &&
           (c->armed_out || !(channel_wants_out(c) || channel_holds_frames(c)));
}

bool sleep_watches_all(const ring_comm *comm)
{
    if (!comm->sleep.watched)
        return false;
    if (comm->failure.pending) /* the verdict wakes */
        return true;
    for (const work *w = comm->works.held; w != NULL; w = w->wait.next)
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
