/* SPDX-License-Identifier: Apache-2.0
 *
 * Sleeping in the kernel on exactly the links that somebody waits for, and being woken.
 */
#include "comm.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A sleep never lasts longer, so that deadlines and the other threads' progress are seen. */
enum { SLEEP_MS = 50 };

struct sleeper {
    _Atomic int wake_fd;  /* -1: none */
    _Atomic int sleepers; /* threads in poll, or about to be */
};

ring_status sleeper_new(ring_comm *comm)
{
    struct sleeper *s = calloc(1, sizeof *s);
    if (s == NULL)
        return fail(RING_ERR_MEMORY, "creating the waiter");
    atomic_init(&s->wake_fd, -1);
    comm->sleeper = s;
    return RING_OK;
}

/* Without descriptors nobody sleeps: who waits yields. */
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
    (void)ignored; /* full means: already readable */
}

void sleeper_stir(ring_comm *comm)
{
    if (atomic_load_explicit(&comm->sleeper->sleepers, memory_order_relaxed) > 0)
        sleeper_wake(comm);
}

/* ---- Sleep ------------------------------------------------------------------- */

/* Only frames that nobody has looked at are news to a link; those of works that have not come to
 * them are none. */
static bool arm_channel(channel *c)
{
    transport_link *l = c->link;
    const transport_frame *frame;
    const void *payload;
    if (c->waiting[WAIT_FRAME] == NULL || c->waiting[WAIT_FRAME]->number != c->received)
        (void)l->transport->peek(l, &frame, &payload);
    c->armed = true;
    return l->transport->arm(l, channel_wants_out(c) || channel_holds_frames(c));
}

/* Works that are held need none: whoever has waited in vain for so long has only closed gates among
 * them, folds of accelerators, whose ends wake all, and those that wait for these.
 * @return number of entries, or 0 if a link has something already. */
static size_t arm_channels(ring_comm *comm, struct pollfd *entries)
{
    size_t used = 0;
    entries[used++] = (struct pollfd){.fd = atomic_load(&comm->sleeper->wake_fd), .events = POLLIN};
    if (comm->failing) /* the verdict wakes, and what other ranks say */
        return used;
    for (int32_t i = 0; i < comm->channels.active_count; i++) {
        transport_link *l = comm->channels.active[i]->link;
        if (!arm_channel(comm->channels.active[i]))
            return 0;
        entries[used++] = (struct pollfd){.fd = l->transport->wake_fd(l), .events = POLLIN};
    }
    return used;
}

/* Any sleeper may be woken by another's event, so only the last one up drains the descriptors. */
void sleeper_leave(ring_comm *comm)
{
    if (atomic_fetch_sub(&comm->sleeper->sleepers, 1) > 1)
        return;
    uint64_t wakes;
    const int fd = atomic_load(&comm->sleeper->wake_fd);
    const ssize_t ignored = fd >= 0 ? read(fd, &wakes, sizeof wakes) : 0;
    (void)ignored;
    channel *c;
    for (size_t at = 0; (c = channels_next(comm, &at)) != NULL;) {
        if (c->armed)
            c->link->transport->disarm(c->link);
        c->armed = false;
    }
}

static void let_others_in(ring_comm *comm)
{
    comm_unlock(comm);
    sched_yield();
    pthread_mutex_lock(&comm->lock);
}

size_t sleeper_places(const ring_comm *comm)
{
    return 1 + (size_t)comm->channels.active_count;
}

size_t sleeper_enter(ring_comm *comm, struct pollfd *entries)
{
    atomic_fetch_add(&comm->sleeper->sleepers, 1);
    return entries != NULL && sleeper_ready(comm) ? arm_channels(comm, entries) : 0;
}

void sleeper_poll(struct pollfd *entries, size_t used, double deadline)
{
    poll(entries, used, clock_ms_until(deadline, SLEEP_MS));
}

void sleeper_sleep(ring_comm *comm, double deadline)
{
    enum { FEW = 1 + 64 };
    struct pollfd few[FEW];
    const size_t most = sleeper_places(comm);
    struct pollfd *all = most <= FEW ? few : calloc(most, sizeof *all);
    const size_t used = sleeper_enter(comm, all);
    if (used > 0) {
        comm_unlock(comm);
        sleeper_poll(all, used, deadline);
        pthread_mutex_lock(&comm->lock);
    } else {
        let_others_in(comm);
    }
    sleeper_leave(comm);
    if (all != few)
        free(all);
}
