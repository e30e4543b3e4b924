/* SPDX-License-Identifier: Apache-2.0
 * Lets threads sleep in poll() on the links of the active channels of one or several
 * communicators. */
#include "sleep.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>

/* The longest sleep. After it, a thread checks deadlines and the progress of other threads. */
enum { SLEEP_MS = 50 };

/* No descriptor reports that a stream has reached its stop, or that a run or fold of an accelerator
 * is complete. While a work waits for one of these, each sleep is therefore short: it grows from
 * least_step to most_step, in seconds. The same holds for frames that accelerators write for other
 * hosts. */
static const double least_step = 50e-6, most_step = 1e-3;

/* @return true if an accelerator runs a call, or folds or copies for one. */
static bool awaits_accelerator(const ring_comm *comm)
{
    for (const work *w = comm->works.held; w != NULL; w = w->wait.next)
        if (w->call.on_device || w->step.phase == PHASE_FOLDING)
            return true;
    for (int32_t i = 0; i < comm->channels.active_count; i++) {
        const posted *first = comm->channels.active[i]->posts;
        if (first != NULL && first->asked)
            return true;
    }
    return false;
}

static double next_step(ring_comm *comm)
{
    if (comm->streams.stops == 0 && !comm->streams.carries && !awaits_accelerator(comm))
        return 0;
    const double step = comm->streams.step > 0 ? comm->streams.step * 1.125 : least_step;
    comm->streams.step = step < most_step ? step : most_step;
    return comm->streams.step;
}

/* @param step  the longest sleep in seconds; 0: SLEEP_MS. */
static void sleep_on(struct pollfd *entries, size_t used, double deadline, double step)
{
    const struct timespec time = {.tv_nsec = (long)(step * 1e9)};
    if (step > 0)
        (void)ppoll(entries, used, &time, NULL);
    else
        (void)poll(entries, used, clock_ms_until(deadline, SLEEP_MS));
}

/* Arms the link, so that its descriptor reports new frames. A frame that has been peeked at is not
 * new and does not wake a sleeper. The next frame is therefore peeked at, unless a work is ready to
 * consume it; tagged frames are always consumed.
 * @return false if there is already a new frame, or the link can send a waiting one. */
static bool arm_channel(channel *c, struct pollfd *entry)
{
    transport_link *l = c->link;
    const transport_frame *frame;
    const void *payload;
    const bool takes = c->proxy_listens ||
                       (c->tagged != NULL ? tagged_listens(c->tagged)
                                          : c->waiting[WAIT_FRAME] != NULL &&
                                                c->waiting[WAIT_FRAME]->wait.number == c->received);
    if (!takes)
        (void)l->transport->peek(l, &frame, &payload);
    c->armed = true;
    c->armed_out = channel_wants_out(c) || channel_holds_frames(c);
    c->armed_at = l->frames_received;
    if (!l->transport->arm(l, c->armed_out)) {
        c->poll_mark = 0; /* the link may not wake its other sleepers any more */
        return false;
    }
    *entry = (struct pollfd){.fd = l->transport->wake_fd(l), .events = POLLIN};
    return true;
}

/* Arms the links of all active channels. Held works need no entries: after several turns without
 * progress, a held work waits for its gate, for a fold on an accelerator, or for another held work.
 * Sleeps are short while an accelerator folds.
 * @return the number of entries, or 0 if arm_channel() returned false. */
static size_t arm_channels(ring_comm *comm, const wakeup_fd *by, struct pollfd *entries)
{
    size_t used = 0;
    entries[used++] = (struct pollfd){.fd = by->fd, .events = POLLIN};
    if (comm->failure.pending) /* the verdict and call reports wake the thread */
        return used;
    for (int32_t i = 0; i < comm->channels.active_count; i++)
        if (!arm_channel(comm->channels.active[i], &entries[used++]))
            return 0;
    for (channel *c = comm->greeting; c != NULL; c = c->next_greeting)
        if (c->place < 0 && !arm_channel(c, &entries[used++]))
            return 0;
    return used;
}

/* Undoes enter(), even if enter() returned 0. Several threads may sleep on the same descriptors, so
 * only the last one drains and disarms the links. */
static void leave(ring_comm *comm, const sleeping_thread *n, bool calls)
{
    sleep_end(comm, n);
    comm->sleep.threads->callers -= calls;
    comm->sleep.polls_all &= calls;
    if (--comm->sleep.threads->sleepers > 0)
        return;
    channel *c;
    for (size_t at = 0; (c = channels_next(comm, &at)) != NULL;) {
        if (c->armed)
            c->link->transport->disarm(c->link);
        c->armed = false;
    }
}

/* @return the most poll entries that a sleep on the communicator needs. */
static size_t most_entries(const ring_comm *comm)
{
    size_t places = 1 + (size_t)comm->channels.active_count;
    for (const channel *c = comm->greeting; c != NULL; c = c->next_greeting)
        places++;
    return places;
}

/* Starts a sleep on the communicator. @param calls  true for a caller, false for the progress
 * thread. @return as arm_channels(). */
static size_t enter(ring_comm *comm, sleeping_thread *n, const wakeup_fd *by,
                    struct pollfd *entries, bool calls)
{
    comm->sleep.threads->sleepers++;
    comm->sleep.threads->callers += calls;
    const bool sleeps = sleep_begin(comm, n, by) && entries != NULL;
    const size_t used = sleeps ? arm_channels(comm, by, entries) : 0;
    if (!calls)
        sleep_mark_polled(comm);
    return used;
}

void poll_links(ring_comm *comm, double deadline)
{
    enum { FEW = 1 + 64 };
    struct pollfd few[FEW];
    const size_t most = most_entries(comm);
    struct pollfd *all = most <= FEW ? few : calloc(most, sizeof *all);
    wakeup_fd *by = wakeup_fd_take();
    sleeping_thread own;
    const size_t used = enter(comm, &own, by, all, true);
    if (used > 0) {
        const double step = next_step(comm);
        comm_unlock(comm);
        sleep_on(all, used, deadline, step);
        comm_lock(comm);
    } else {
        comm_unlock(comm);
        sched_yield(); /* lets other threads take the lock */
        comm_lock(comm);
    }
    leave(comm, &own, true);
    wakeup_fd_give_back(by);
    if (all != few)
        free(all);
}

/* ---- Sleeping on several communicators --------------------------------------- */

static bool make_room_for_comm(poll_list *s)
{
    if (s->comm_count < s->comm_room)
        return true;
    polled_comm **more = realloc(s->comms, (s->comm_room + 1) * sizeof(polled_comm *));
    if (more == NULL)
        return false;
    s->comms = more;
    s->comms[s->comm_room] = malloc(sizeof(polled_comm));
    if (s->comms[s->comm_room] == NULL)
        return false;
    s->comm_room++;
    return true;
}

/* @return false if there is no memory; the thread then does not sleep. */
static bool make_room(poll_list *s, size_t entries)
{
    if (entries > s->room) {
        struct pollfd *more = realloc(s->entries, entries * sizeof *more);
        if (more == NULL)
            return false;
        s->entries = more;
        s->room = entries;
    }
    return true;
}

void poll_list_add_descriptor(poll_list *s, int fd)
{
    s->awake |= !make_room(s, s->used + 1);
    if (!s->awake)
        s->entries[s->used++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

bool poll_list_has(const poll_list *s, const ring_comm *comm)
{
    for (size_t i = 0; i < s->comm_count; i++)
        if (s->comms[i]->comm == comm)
            return true;
    return false;
}

bool poll_list_add(poll_list *s, ring_comm *comm)
{
    if (!make_room_for_comm(s) || !make_room(s, s->used + most_entries(comm))) {
        s->awake = true;
        return false;
    }
    if (s->by == NULL)
        s->by = wakeup_fd_take();
    polled_comm *n = s->comms[s->comm_count++];
    n->comm = comm;
    const size_t used = enter(comm, &n->self, s->by, s->entries + s->used, s->calls);
    s->used += used;
    s->awake |= used == 0;
    const double step = next_step(comm);
    if (!s->calls)
        comm->sleep.brief = step > 0;
    s->step = step > 0 && (s->step <= 0 || step < s->step) ? step : s->step;
    return true;
}

void poll_list_sleep(poll_list *s, double deadline)
{
    if (s->awake)
        sched_yield();
    else
        sleep_on(s->entries, s->used, deadline, s->step);
    for (size_t i = 0; i < s->comm_count; i++) {
        ring_comm *comm = s->comms[i]->comm;
        comm_lock(comm);
        leave(comm, &s->comms[i]->self, s->calls);
        if (s->calls)
            comm_unlock(comm);
        else /* comm_unlock() might make the progress thread kick itself */
            pthread_mutex_unlock(&comm->lock);
    }
    wakeup_fd_give_back(s->by);
    s->by = NULL;
}

void poll_list_free(poll_list *s)
{
    for (size_t i = 0; i < s->comm_room; i++)
        free(s->comms[i]);
    free(s->entries);
    free(s->comms);
}
