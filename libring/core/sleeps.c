/* SPDX-License-Identifier: Apache-2.0
 * Sleeping in the kernel on the links of active channels. */
#include "sleeper.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/* The longest sleep, so that deadlines and the progress of other threads are seen. */
enum { SLEEP_MS = 50 };

/* No descriptor reports that a stream has come to its stop: sleeps are short then, and grow with
 * the time waited so far. */
static const double least_step = 50e-6, most_step = 1e-3;

static double next_step(ring_comm *comm)
{
    if (comm->stops == 0)
        return 0;
    const double step = comm->stop_step > 0 ? comm->stop_step * 1.125 : least_step;
    comm->stop_step = step < most_step ? step : most_step;
    return comm->stop_step;
}

/* @param step  0: none. */
static void sleep_on(struct pollfd *entries, size_t used, double deadline, double step)
{
    const struct timespec time = {.tv_nsec = (long)(step * 1e9)};
    if (step > 0)
        (void)ppoll(entries, used, &time, NULL);
    else
        (void)poll(entries, used, clock_ms_until(deadline, SLEEP_MS));
}

/* Frames that were peeked are not news to a link: only later ones wake. A link whose work is next
 * in order is not peeked; tagged frames are all taken.
 * @return false if the link has something already. */
static bool arm_channel(channel *c, struct pollfd *entry)
{
    transport_link *l = c->link;
    const transport_frame *frame;
    const void *payload;
    const bool takes = c->tagged != NULL ? tagged_listens(c->tagged)
                                         : c->waiting[WAIT_FRAME] != NULL &&
                                               c->waiting[WAIT_FRAME]->number == c->received;
    if (!takes)
        (void)l->transport->peek(l, &frame, &payload);
    c->armed = true;
    c->armed_out = channel_wants_out(c) || channel_holds_frames(c);
    c->armed_at = l->frames_received;
    if (!l->transport->arm(l, c->armed_out)) {
        c->watch_mark = 0; /* other sleepers of the link may not be woken any more */
        return false;
    }
    *entry = (struct pollfd){.fd = l->transport->wake_fd(l), .events = POLLIN};
    return true;
}

/* Held works need no entry: after so many looks only closed gates, folds of accelerators, whose
 * ends wake all sleepers, and works behind these are left.
 * @return number of entries, or 0 if a link has something already. */
static size_t arm_channels(ring_comm *comm, struct pollfd *entries)
{
    size_t used = 0;
    entries[used++] = (struct pollfd){.fd = atomic_load(&comm->sleeper->wake_fd), .events = POLLIN};
    if (comm->failing) /* the verdict wakes, and statements */
        return used;
    for (int32_t i = 0; i < comm->channels.active_count; i++)
        if (!arm_channel(comm->channels.active[i], &entries[used++]))
            return 0;
    for (channel *c = comm->greeting; c != NULL; c = c->next_greeting)
        if (c->place < 0 && !arm_channel(c, &entries[used++]))
            return 0;
    return used;
}

/* Also after 0 entries. An event may wake several sleepers, so only the last one up drains the
 * descriptors. */
static void leave(ring_comm *comm, bool calls)
{
    comm->sleeper->callers -= calls;
    comm->watched &= calls;
    if (--comm->sleeper->sleepers > 0)
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
    comm_lock(comm);
}

/* @return the most entries that a sleep needs. */
static size_t places_of(const ring_comm *comm)
{
    size_t places = 1 + (size_t)comm->channels.active_count;
    for (const channel *c = comm->greeting; c != NULL; c = c->next_greeting)
        places++;
    return places;
}

/* @param calls  for a caller, not for the progress thread. @return as arm_channels(). */
static size_t enter(ring_comm *comm, struct pollfd *entries, bool calls)
{
    comm->sleeper->sleepers++;
    comm->sleeper->callers += calls;
    const size_t used = entries != NULL && sleeper_ready(comm) ? arm_channels(comm, entries) : 0;
    if (!calls)
        sleeper_watch_all(comm);
    return used;
}

void sleeper_sleep(ring_comm *comm, double deadline)
{
    enum { FEW = 1 + 64 };
    struct pollfd few[FEW];
    const size_t most = places_of(comm);
    struct pollfd *all = most <= FEW ? few : calloc(most, sizeof *all);
    const size_t used = enter(comm, all, true);
    if (used > 0) {
        const double step = next_step(comm);
        comm_unlock(comm);
        sleep_on(all, used, deadline, step);
        comm_lock(comm);
    } else {
        let_others_in(comm);
    }
    leave(comm, true);
    if (all != few)
        free(all);
}

/* ---- Sleep on several communicators ------------------------------------------ */

/* Without memory no thread sleeps. */
static bool make_room(sleep_list *s, size_t comms, size_t entries)
{
    if (comms > s->comm_room) {
        ring_comm **more = realloc(s->comms, comms * sizeof(ring_comm *));
        if (more == NULL)
            return false;
        s->comms = more;
        s->comm_room = comms;
    }
    if (entries > s->room) {
        struct pollfd *more = realloc(s->entries, entries * sizeof *more);
        if (more == NULL)
            return false;
        s->entries = more;
        s->room = entries;
    }
    return true;
}

void sleep_list_add_descriptor(sleep_list *s, int fd)
{
    s->awake |= !make_room(s, s->comm_count, s->used + 1);
    if (!s->awake)
        s->entries[s->used++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

bool sleep_list_has(const sleep_list *s, const ring_comm *comm)
{
    for (size_t i = 0; i < s->comm_count; i++)
        if (s->comms[i] == comm)
            return true;
    return false;
}

bool sleep_list_add(sleep_list *s, ring_comm *comm)
{
    if (!make_room(s, s->comm_count + 1, s->used + places_of(comm))) {
        s->awake = true;
        return false;
    }
    s->comms[s->comm_count++] = comm;
    const size_t used = enter(comm, s->entries + s->used, s->calls);
    s->used += used;
    s->awake |= used == 0;
    const double step = next_step(comm);
    s->step = step > 0 && (s->step <= 0 || step < s->step) ? step : s->step;
    return true;
}

/* The progress thread looks next itself: its unlock does not kick. */
static void unlock_after(ring_comm *comm, bool calls)
{
    if (calls)
        comm_unlock(comm);
    else
        pthread_mutex_unlock(&comm->lock);
}

void sleep_list_sleep(sleep_list *s, double deadline)
{
    if (s->awake)
        sched_yield();
    else
        sleep_on(s->entries, s->used, deadline, s->step);
    for (size_t i = 0; i < s->comm_count; i++) {
        comm_lock(s->comms[i]);
        leave(s->comms[i], s->calls);
        unlock_after(s->comms[i], s->calls);
    }
}

void sleep_list_free(sleep_list *s)
{
    free(s->entries);
    free(s->comms);
}
