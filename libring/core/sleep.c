/* SPDX-License-Identifier: Apache-2.0
 * Lists and wakes the threads that sleep on a communicator, and tracks whether the progress thread
 * polls everything that works wait for. */
#include "sleep.h"

#include <stdlib.h>

ring_status sleep_new(ring_comm *comm)
{
    struct sleeping_threads *s = calloc(1, sizeof *s);
    if (s == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while creating the communicator");
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

/* The thread is listed before `wakes` is read. sleep_wake() increments `wakes` before it reads the
 * list, so no wake is lost. */
bool sleep_begin(ring_comm *comm, sleeping_thread *n, const wakeup_fd *by)
{
    struct sleeping_threads *s = comm->sleep.threads;
    pthread_mutex_lock(&s->lock);
    *n = (sleeping_thread){.next = s->first, .by = by};
    s->first = n;
    pthread_mutex_unlock(&s->lock);
    return by != NULL && atomic_load(&comm->sleep.wakes) == comm->sleep.wakes_seen;
}

void sleep_end(ring_comm *comm, const sleeping_thread *n)
{
    struct sleeping_threads *s = comm->sleep.threads;
    pthread_mutex_lock(&s->lock);
    sleeping_thread **at = &s->first;
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
    for (const sleeping_thread *n = s->first; n != NULL; n = n->next)
        if (n->by != NULL)
            wakeup_fd_signal(n->by);
    pthread_mutex_unlock(&s->lock);
}

void sleep_wake_callers(ring_comm *comm)
{
    if (comm->sleep.threads->callers > 0)
        sleep_wake(comm);
}

void sleep_mark_polled(ring_comm *comm)
{
    comm->sleep.polls_all = true;
    comm->sleep.poll_mark++;
    for (int32_t i = 0; i < comm->channels.active_count; i++)
        comm->channels.active[i]->poll_mark = comm->sleep.poll_mark;
    for (channel *c = comm->greeting; c != NULL; c = c->next_greeting)
        c->poll_mark = comm->sleep.poll_mark;
}

/* @return true if the progress thread polls the link for the events for which the channel waits. A
 * link is armed for one frame only: once a frame has been consumed since armed_at, the next frame
 * does not wake the thread. */
static bool is_polled(const channel *c)
{
    return c->poll_mark == c->comm->sleep.poll_mark && c->armed_at == c->link->frames_received &&
           (c->armed_out || !(channel_wants_out(c) || channel_holds_frames(c)));
}

bool sleep_polls_all(const ring_comm *comm)
{
    if (!comm->sleep.polls_all)
        return false;
    if (comm->failure.pending) /* the verdict will wake the thread */
        return true;
    if (comm->streams.carries && !comm->sleep.brief)
        return false;
    for (const work *w = comm->works.held; w != NULL; w = w->wait.next)
        if (!work_is_gated(w) && !(w->call.on_device && comm->sleep.brief))
            return false;
    for (int32_t i = 0; i < comm->channels.active_count; i++)
        if (!is_polled(comm->channels.active[i]))
            return false;
    for (const channel *c = comm->greeting; c != NULL; c = c->next_greeting)
        if (!is_polled(c))
            return false;
    return true;
}
