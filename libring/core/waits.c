/* SPDX-License-Identifier: Apache-2.0
 * What callers do with handles: wait for one, all, any of them, or look. */
#include "call_group.h"

#include "handle.h"

#include <poll.h>
#include <stdlib.h>

#define GATE_LOOK_SECONDS 0.02

/* Ends a handle whose call is over, and tells how. The caller holds the lock. */
static ring_status end_handle(ring_work **handle, work *w)
{
    const ring_status status = w->status;
    const bool first = handle_end(*handle);
    *handle = NULL;
    w->handle = 0;
    if (w->waiters == 0 && !w->telling)
        work_recycle(w);
    if (!first)
        return fail(RING_ERR_USAGE, "two threads waited for one handle");
    return status == RING_OK ? RING_OK : fail(status, "%s", w->comm->error);
}

static ring_status end_lost(ring_work **handle, const handle_view *view)
{
    handle_end(*handle);
    *handle = NULL;
    return view->status == RING_OK
               ? RING_OK
               : fail(view->status,
                      "the communicator failed or was destroyed before the call ended");
}

/* Takes the lock of the handle's communicator. With RING_OK it is held, unless view->comm is NULL:
 * that communicator is gone. */
static ring_status lock_handle(ring_work *handle, const char *call, handle_view *view)
{
    RING_TRY(handle_look(handle, call, view));
    if (view->comm == NULL)
        return RING_OK;
    RING_TRY(comm_check_own(view->comm, call));
    pthread_mutex_lock(&view->comm->lock);
    const ring_status status = handle_look(handle, call, view);
    if (status != RING_OK) /* another thread has ended it */
        comm_unlock(view->comm);
    return status;
}

/* @param deadline  0: none. */
static ring_status wait_until(ring_work **handle, double deadline, const char *call)
{
    handle_view view;
    if (handle == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_%s: work is NULL", call);
    RING_TRY(call_group_refuse(call));
    if (*handle == NULL)
        return RING_OK;
    RING_TRY(lock_handle(*handle, call, &view));
    if (view.comm == NULL)
        return end_lost(handle, &view);
    ring_status status = wait_for_work(view.work, deadline);
    if (status == RING_OK)
        status = end_handle(handle, view.work);
    comm_unlock(view.comm);
    return status;
}

ring_status ring_wait(ring_work **handle)
{
    return wait_until(handle, 0, "wait");
}

ring_status ring_wait_for(ring_work **handle, double seconds)
{
    if (!(seconds >= 0))
        return fail(RING_ERR_ARGUMENT, "ring_wait_for: want 0 or more seconds");
    return wait_until(handle, clock_now() + seconds, "wait_for");
}

ring_status ring_wait_all(ring_work **works, size_t count)
{
    ring_status first = RING_OK;
    if (works == NULL && count > 0)
        return fail(RING_ERR_ARGUMENT, "ring_wait_all: works is NULL");
    for (size_t i = 0; i < count; i++) {
        const ring_status status = ring_wait(&works[i]);
        if (first == RING_OK)
            first = status;
    }
    return first;
}

/* ---- Looking ------------------------------------------------------------------------ */

/* Moves the work's communicator. @param[in,out] moved  true if anything did.
 * @return true if the work is over. */
static bool look(const handle_view *view, bool *moved)
{
    ring_comm *comm = view->comm;
    if (view->work->finished)
        return true;
    const bool stirs = engine_turn(comm, TURN_BYTES);
    *moved |= stirs;
    if (!stirs && !view->work->finished)
        engine_look(comm, clock_now());
    return view->work->finished;
}

/* Ends the handle if its call is over, and it is not to be kept. */
static ring_status test_one(ring_work **handle, const char *call, bool keep, bool *done,
                            bool *moved)
{
    handle_view view;
    *done = false;
    RING_TRY(call_group_refuse(call));
    *done = true;
    if (*handle == NULL)
        return RING_OK;
    RING_TRY(lock_handle(*handle, call, &view));
    if (view.comm == NULL)
        return keep ? RING_OK : end_lost(handle, &view);
    const bool crowded = view.comm->crowded;
    *done = look(&view, moved);
    const ring_status status = *done && !keep ? end_handle(handle, view.work) : RING_OK;
    comm_unlock(view.comm);
    if (!*done && crowded)
        wait_yield(); /* else whoever tests keeps the core from those that it waits for */
    return status;
}

ring_status ring_test(ring_work **handle, int *done)
{
    bool over, moved = false;
    if (handle == NULL || done == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_test: work or done is NULL");
    const ring_status status = test_one(handle, "test", false, &over, &moved);
    *done = over;
    return status;
}

ring_status ring_test_all(ring_work **works, size_t count, int *done)
{
    if (done == NULL || (works == NULL && count > 0))
        return fail(RING_ERR_ARGUMENT, "ring_test_all: works or done is NULL");
    *done = 1;
    for (size_t i = 0; i < count && *done; i++) {
        bool over, moved = false;
        RING_TRY(test_one(&works[i], "test_all", true, &over, &moved));
        *done = over;
    }
    return *done ? ring_wait_all(works, count) : RING_OK;
}

/* ---- Waiting for any of several ------------------------------------------------------ */

/** Works of which one is waited for. */
typedef struct choice {
    ring_work **works;
    size_t count, index; /* of the first that is over; count: none is */
    bool any, moved;     /* there is one at all; the last look moved something */
} choice;

static ring_status find_ended(choice *c)
{
    c->any = c->moved = false;
    for (c->index = 0; c->index < c->count; c->index++) {
        bool over;
        if (c->works[c->index] == NULL)
            continue;
        c->any = true;
        RING_TRY(test_one(&c->works[c->index], "wait_any", true, &over, &c->moved));
        if (over)
            return RING_OK;
    }
    return RING_OK;
}

static bool is_decided(const choice *c)
{
    return !c->any || c->index < c->count;
}

/* While this thread waits for them they are no orphans. A handle that another thread has ended
 * meanwhile, against the rules, leaves its work to the end of the communicator. */
static void adopt_works(const choice *c, bool mine)
{
    for (size_t i = 0; i < c->count; i++) {
        handle_view view;
        if (c->works[i] == NULL || lock_handle(c->works[i], "wait_any", &view) != RING_OK ||
            view.comm == NULL)
            continue;
        view.work->waiters += mine ? 1 : -1;
        if (!view.work->finished)
            work_set_orphan(view.work, view.work->waiters == 0);
        comm_unlock(view.comm);
    }
}

/** A sleep on all communicators of some works. */
typedef struct sleep_on {
    ring_comm **comms; /* those that were entered */
    size_t comm_count;
    struct pollfd *entries;
    size_t used, room;
    bool awake; /* there is something already */
} sleep_on;

static bool has_entered(const sleep_on *s, const ring_comm *comm)
{
    for (size_t i = 0; i < s->comm_count; i++)
        if (s->comms[i] == comm)
            return true;
    return false;
}

/* Locked. Without memory nobody sleeps. */
static void enter(sleep_on *s, ring_comm *comm)
{
    const size_t wanted = s->used + sleeper_places(comm);
    struct pollfd *entries = wanted > s->room ? realloc(s->entries, wanted * sizeof *entries)
                                              : s->entries;
    s->awake = entries == NULL;
    if (s->awake)
        return;
    s->entries = entries;
    s->room = max_size(s->room, wanted);
    s->comms[s->comm_count++] = comm;
    const size_t used = sleeper_enter(comm, entries + s->used);
    s->used += used;
    s->awake = used == 0;
}

/* Once its communicator was entered, the ends of the work and of the communicator wake. Of earlier
 * ones another sleeper may have taken the call. */
static void enter_for(sleep_on *s, ring_work *handle)
{
    handle_view view;
    s->awake = lock_handle(handle, "wait_any", &view) != RING_OK || view.comm == NULL;
    if (s->awake)
        return;
    if (!has_entered(s, view.comm))
        enter(s, view.comm);
    s->awake |= view.work->finished || !comm_is_fine(view.comm);
    comm_unlock(view.comm);
}

static void sleep_on_all(const choice *c)
{
    sleep_on s = {.comms = malloc(c->count * sizeof(ring_comm *))};
    s.awake = s.comms == NULL;
    for (size_t i = 0; i < c->count && !s.awake; i++)
        if (c->works[i] != NULL)
            enter_for(&s, c->works[i]);
    if (s.awake)
        wait_yield();
    else
        sleeper_poll(s.entries, s.used, clock_now() + 1);
    for (size_t i = 0; i < s.comm_count; i++) {
        pthread_mutex_lock(&s.comms[i]->lock);
        sleeper_leave(s.comms[i]);
        comm_unlock(s.comms[i]);
    }
    free(s.entries);
    free(s.comms);
}

/* @return its time-out if it waits for an event, else 0: its own deadline ends it. */
static double gate_patience(ring_work *handle)
{
    handle_view view;
    double seconds = 0;
    if (lock_handle(handle, "wait_any", &view) != RING_OK || view.comm == NULL)
        return 0;
    if (!view.work->finished && work_is_gated(view.work))
        seconds = view.work->timeout;
    comm_unlock(view.comm);
    return seconds;
}

/* @return the longest time-out of them if all wait for events, else 0. */
static double longest_patience(ring_work *const *works, size_t count)
{
    double longest = 0;
    for (size_t i = 0; i < count; i++) {
        if (works[i] == NULL)
            continue;
        const double seconds = gate_patience(works[i]);
        if (seconds <= 0)
            return 0;
        longest = seconds > longest ? seconds : longest;
    }
    return longest;
}

/* Events that stay unset must not make a caller wait for ever. */
static bool is_in_vain(ring_work *const *works, size_t count, double *since, double *next_look)
{
    const double now = clock_now();
    if (now < *next_look)
        return false;
    *next_look = now + GATE_LOOK_SECONDS;
    const double patience = longest_patience(works, count);
    if (patience <= 0)
        *since = now;
    return patience > 0 && now - *since >= patience;
}

static ring_status wait_until_any(choice *c)
{
    unsigned looks = 0;
    double since = clock_now(), next_look = since + GATE_LOOK_SECONDS;
    for (;;) {
        RING_TRY(find_ended(c));
        if (is_decided(c))
            return RING_OK;
        if (c->moved)
            looks = 0;
        if (wait_between_looks(&looks))
            sleep_on_all(c);
        if (is_in_vain(c->works, c->count, &since, &next_look))
            return fail(RING_IN_PROGRESS, "ring_wait_any: no event that its calls wait for was set "
                                          "within their time-out; the calls go on");
    }
}

ring_status ring_wait_any(ring_work **works, size_t count, size_t *index)
{
    choice c = {.works = works, .count = count, .index = count};
    if (index == NULL || (works == NULL && count > 0))
        return fail(RING_ERR_ARGUMENT, "ring_wait_any: works or index is NULL");
    *index = count;
    RING_TRY(call_group_refuse("wait_any"));
    ring_status status = find_ended(&c);
    if (status == RING_OK && !is_decided(&c)) {
        adopt_works(&c, true);
        status = wait_until_any(&c);
        adopt_works(&c, false);
    }
    *index = c.index;
    RING_TRY(status);
    return c.index < count ? ring_wait(&works[c.index]) : RING_OK;
}
