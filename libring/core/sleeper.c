/* SPDX-License-Identifier: Apache-2.0
 * Waking threads that sleep; and whether the progress thread sleeps on all that works wait for. */
#include "sleeper.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

ring_status sleeper_new(ring_comm *comm)
{
    struct sleeper *s = calloc(1, sizeof *s);
    if (s == NULL)
        return fail(RING_ERR_MEMORY, "creating the waiter");
    atomic_init(&s->wake_fd, -1);
    comm->sleeper = s;
    return RING_OK;
}

/* Without an eventfd no thread sleeps: waiting threads yield. */
bool sleeper_ready(ring_comm *comm)
{
    if (atomic_load(&comm->sleeper->wake_fd) >= 0)
        return true;
    atomic_store(&comm->sleeper->wake_fd, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return false;
}

void sleeper_free(ring_comm *comm)
{
    int fd = comm->sleeper != NULL ? atomic_load(&comm->sleeper->wake_fd) : -1;
    fd_close(&fd);
    free(comm->sleeper);
}

void sleeper_wake(void *context)
{
    const ring_comm *comm = context;
    const uint64_t one = 1;
    const int fd = atomic_load(&comm->sleeper->wake_fd);
    const ssize_t ignored = fd >= 0 ? write(fd, &one, sizeof one) : 0;
    (void)ignored; /* EAGAIN: it is readable already */
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
