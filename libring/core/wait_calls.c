/* SPDX-License-Identifier: Apache-2.0
 * Waiting for handles, and testing them: one, all, or any of them. */
#include "call_group.h"
#include "engine.h"
#include "handle.h"
#include "sleep.h"
#include "wait.h"

#include <sched.h>

/* No thread is in its handle any more, which has ended. The caller holds the lock. */
static void give_back(work *w)
{
    w->result.handle = 0;
    if (!w->result.pending)
        work_recycle(w);
}

/* Returns how a call has ended, or what is known of it if its communicator is gone; else the caller
 * holds the lock. @param ends  the handle, which becomes NULL; else it is only left. */
static ring_status end_handle(ring_work **handle, const handle_view *view, bool ends)
{
    work *w = view->comm != NULL ? view->work : NULL;
    const ring_status status = w != NULL ? w->result.status : view->status;
    if (handle_leave(*handle, ends) && w != NULL)
        give_back(w);
    *handle = ends ? NULL : *handle;
    return status == RING_OK
               ? RING_OK
               : fail(status, "%s",
                      w != NULL ? view->comm->failure.text
                                : "the communicator failed or was destroyed before the call ended");
}

/* Takes the lock of the communicator of a handle that was entered. With RING_OK it is held, unless
 * view->comm is NULL: that communicator is gone. */
static ring_status lock_handle(const ring_work *handle, const char *call, handle_view *view)
{
    *view = handle_look(handle);
    if (view->comm == NULL)
        return RING_OK;
    RING_TRY(comm_check_own(view->comm, call));
    comm_lock(view->comm);
    return RING_OK;
}

/* Leaves a handle without its result. */
static void leave(const ring_work *handle)
{
    const handle_view view = handle_look(handle);
    if (!handle_leave(handle, false) || view.comm == NULL)
        return;
    comm_lock(view.comm);
    give_back(view.work);
    comm_unlock(view.comm);
}

/* Waits for a handle that was entered, and leaves it. @param deadline  0: none. */
static ring_status wait_entered(ring_work **handle, double deadline, bool ends, const char *call)
{
    handle_view view;
    const ring_status own = lock_handle(*handle, call, &view);
    if (own != RING_OK) {
        handle_leave(*handle, false);
        return own;
    }
    if (view.comm == NULL)
        return end_handle(handle, &view, ends);
    ring_status status = wait_for_work(view.work, deadline);
    if (status == RING_OK)
        status = end_handle(handle, &view, ends);
    else if (handle_leave(*handle, false))
        give_back(view.work);
    comm_unlock(view.comm);
    return status;
}

static ring_status wait_until(ring_work **handle, double deadline, bool ends, const char *call)
{
    if (handle == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_%s: work is NULL", call);
    RING_TRY(call_group_refuse(call));
    if (*handle == NULL)
        return RING_OK;
    RING_TRY(handle_enter(*handle, call));
    return wait_entered(handle, deadline, ends, call);
}

ring_status ring_wait(ring_work **handle)
{
    return wait_until(handle, 0, true, "wait");
}

ring_status ring_wait_for(ring_work **handle, double seconds)
{
    if (!(seconds >= 0))
        return fail(RING_ERR_ARGUMENT, "ring_wait_for: want 0 or more seconds");
    return wait_until(handle, clock_now() + seconds, true, "wait_for");
}

ring_status ring_wait_keep(ring_work *handle, double seconds)
{
    if (!(seconds >= 0))
        return fail(RING_ERR_ARGUMENT, "ring_wait_keep: want 0 or more seconds");
    return wait_until(&handle, clock_now() + seconds, false, "wait_keep");
}

/* Enters handles from the first one on, up to one that has ended. @return how many, counting NULL
 * ones. */
static size_t enter_each(ring_work *const *works, size_t count, const char *call)
{
    size_t i = 0;
    while (i < count && (works[i] == NULL || handle_enter(works[i], call) == RING_OK))
        i++;
    return i;
}

static void leave_each(ring_work *const *works, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (works[i] != NULL)
            leave(works[i]);
}

/* Waits for handles that were entered. @return the first error. */
static ring_status wait_for_each(ring_work **works, size_t count, const char *call)
{
    ring_status first = RING_OK;
    for (size_t i = 0; i < count; i++) {
        const ring_status status = works[i] != NULL ? wait_entered(&works[i], 0, true, call)
                                                    : RING_OK;
        if (first == RING_OK)
            first = status;
    }
    return first;
}

/* All are waited for, even if one handle has ended before. */
ring_status ring_wait_all(ring_work **works, size_t count)
{
    ring_status first = RING_OK;
    if (works == NULL && count > 0)
        return fail(RING_ERR_ARGUMENT, "ring_wait_all: works is NULL");
    RING_TRY(call_group_refuse("wait_all"));
    for (size_t i = 0; i < count; i++) {
        const ring_status status = works[i] != NULL ? handle_enter(works[i], "wait_all") : RING_OK;
        if (status != RING_OK)
            works[i] = NULL;
        if (first == RING_OK)
            first = status;
    }
    const ring_status waited = wait_for_each(works, count, "wait_all");
    return first != RING_OK ? first : waited;
}

/* ---- Looking ------------------------------------------------------------------------ */

/* Moves the work's communicator. @param[in,out] moved  true if anything did.
 * @return true if the work is over. */
static bool look(const handle_view *view, bool *moved)
{
    ring_comm *comm = view->comm;
    if (view->work->result.finished)
        return true;
    const bool stirs = engine_turn(comm, TURN_BYTES);
    *moved |= stirs;
    if (!stirs && !view->work->result.finished)
        engine_look(comm, clock_now());
    return view->work->result.finished;
}

/* The result of a look at a handle. */
typedef struct glimpse {
    bool over, moved;
    double patience; /* the time-out of a call that is gated; 0: its own deadline ends it */
} glimpse;

/* Looks at a handle that was entered. */
static ring_status look_entered(const ring_work *handle, const char *call, glimpse *seen)
{
    handle_view view;
    *seen = (glimpse){.over = true};
    RING_TRY(lock_handle(handle, call, &view));
    if (view.comm == NULL)
        return RING_OK;
    const bool crowded = view.comm->crowded;
    seen->over = look(&view, &seen->moved);
    if (!seen->over && work_is_gated(view.work))
        seen->patience = view.work->wait.timeout;
    comm_unlock(view.comm);
    if (!seen->over && crowded)
        sched_yield(); /* a testing caller must not keep the core from the ranks it waits for */
    return RING_OK;
}

/* @param[out] done  all handles, which were entered. */
static ring_status look_at_each(ring_work *const *works, size_t count, const char *call, bool *done)
{
    *done = true;
    for (size_t i = 0; i < count && *done; i++) {
        glimpse seen = {.over = true};
        if (works[i] != NULL)
            RING_TRY(look_entered(works[i], call, &seen));
        *done = seen.over;
    }
    return RING_OK;
}

/* Ends the handles if all calls are over, else only leaves them. */
static ring_status test_each(ring_work **works, size_t count, int *done, const char *call)
{
    bool over = true;
    *done = 0;
    RING_TRY(call_group_refuse(call));
    *done = 1;
    const size_t entered = enter_each(works, count, call);
    const ring_status status = entered == count ? look_at_each(works, count, call, &over)
                                                : RING_ERR_USAGE;
    if (status == RING_OK && over)
        return wait_for_each(works, count, call);
    leave_each(works, entered);
    *done = status != RING_OK;
    return status;
}

ring_status ring_test(ring_work **handle, int *done)
{
    if (handle == NULL || done == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_test: work or done is NULL");
    return test_each(handle, 1, done, "test");
}

ring_status ring_test_all(ring_work **works, size_t count, int *done)
{
    if (done == NULL || (works == NULL && count > 0))
        return fail(RING_ERR_ARGUMENT, "ring_test_all: works or done is NULL");
    return test_each(works, count, done, "test_all");
}

/* ---- Waiting for any of several ------------------------------------------------------ */

/** Works of which one is waited for. */
typedef struct choice {
    ring_work **works;
    size_t count, index; /* of the first that is over; count: none is */
    size_t entered;      /* those that were looked at so far */
    bool any, moved;     /* any: some handle is not NULL; moved: by the last look */
    double patience;     /* the longest of the calls if all are gated, else 0 */
} choice;

static ring_status find_ended(choice *c)
{
    bool gated = true;
    c->any = c->moved = false;
    c->patience = 0;
    for (c->index = 0; c->index < c->count; c->index++) {
        glimpse seen;
        if (c->works[c->index] == NULL)
            continue;
        c->any = true;
        if (c->index >= c->entered)
            RING_TRY(handle_enter(c->works[c->index], "wait_any"));
        c->entered = c->index < c->entered ? c->entered : c->index + 1;
        RING_TRY(look_entered(c->works[c->index], "wait_any", &seen));
        c->moved |= seen.moved;
        if (seen.over)
            return RING_OK;
        gated &= seen.patience > 0;
        c->patience = seen.patience > c->patience ? seen.patience : c->patience;
    }
    c->patience = gated ? c->patience : 0;
    return RING_OK;
}

static bool is_decided(const choice *c)
{
    return !c->any || c->index < c->count;
}

/* Counts this thread as a waiter, so that the works are no orphans. */
static void adopt_works(const choice *c, bool mine)
{
    for (size_t i = 0; i < c->count; i++) {
        handle_view view;
        if (c->works[i] == NULL || lock_handle(c->works[i], "wait_any", &view) != RING_OK ||
            view.comm == NULL)
            continue;
        view.work->result.waiters += mine ? 1 : -1;
        comm_count_waiter(view.comm, mine ? 1 : -1);
        if (!view.work->result.finished)
            work_set_orphan(view.work, view.work->result.waiters == 0);
        comm_unlock(view.comm);
    }
}

/* After its communicator was entered, the ends of the work and of the communicator wake this sleep.
 * An earlier end may have woken another sleeper only: it is checked here. */
static void enter_for(poll_list *s, ring_work *handle)
{
    handle_view view;
    s->awake = lock_handle(handle, "wait_any", &view) != RING_OK || view.comm == NULL;
    if (s->awake)
        return;
    if (!poll_list_has(s, view.comm))
        (void)poll_list_add(s, view.comm);
    s->awake |= view.work->result.finished || !comm_is_fine(view.comm);
    comm_unlock(view.comm);
}

static void sleep_on_works(const choice *c)
{
    poll_list s = {.calls = true};
    for (size_t i = 0; i < c->count && !s.awake; i++)
        if (c->works[i] != NULL)
            enter_for(&s, c->works[i]);
    poll_list_sleep(&s, clock_now() + 1);
    poll_list_free(&s);
}

/* Events that are never set must not make a caller wait for ever. @param[in,out] since  all calls
 * are gated; 0: some was not. */
static bool is_in_vain(const choice *c, double *since)
{
    const double now = c->patience > 0 ? clock_now() : 0;
    *since = now > 0 && *since > 0 ? *since : now;
    return now > 0 && now - *since >= c->patience;
}

static ring_status wait_until_any(choice *c)
{
    unsigned looks = 0;
    double since = 0;
    for (;;) {
        RING_TRY(find_ended(c));
        if (is_decided(c))
            return RING_OK;
        if (c->moved)
            looks = 0;
        if (wait_between_looks(&looks))
            sleep_on_works(c);
        if (is_in_vain(c, &since))
            return fail(RING_IN_PROGRESS, "ring_wait_any: no event that its calls wait for was set "
                                          "within their time-out; the calls go on");
    }
}

/* Enters handles as it comes to them. */
static ring_status choose(choice *c)
{
    RING_TRY(find_ended(c));
    if (is_decided(c))
        return RING_OK;
    adopt_works(c, true);
    const ring_status status = wait_until_any(c);
    adopt_works(c, false);
    return status;
}

ring_status ring_wait_any(ring_work **works, size_t count, size_t *index)
{
    choice c = {.works = works, .count = count, .index = count};
    if (index == NULL || (works == NULL && count > 0))
        return fail(RING_ERR_ARGUMENT, "ring_wait_any: works or index is NULL");
    *index = count;
    RING_TRY(call_group_refuse("wait_any"));
    ring_status status = choose(&c);
    ring_work *found = NULL;
    *index = c.index;
    if (status == RING_OK && c.index < count) {
        found = works[c.index];
        works[c.index] = NULL;
    }
    leave_each(works, c.entered);
    return found != NULL ? wait_entered(&found, 0, true, "wait_any") : status;
}
