/* SPDX-License-Identifier: Apache-2.0
 * What callers do with handles: wait for one, all, any of them, or look. */
#include "call_group.h"

#include "handle.h"

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
               : fail(view->status, "the communicator was destroyed before the call ended");
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

/* Moves the work's communicator. @return true if the work is over. */
static bool look(const handle_view *view)
{
    ring_comm *comm = view->comm;
    if (view->work->finished)
        return true;
    const bool moved = engine_turn(comm, TURN_BYTES);
    if (!moved && !view->work->finished)
        engine_look(comm, clock_now());
    return view->work->finished;
}

/* Ends the handle if its call is over. */
static ring_status test_one(ring_work **handle, const char *call, bool keep, bool *done)
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
    *done = look(&view);
    const ring_status status = *done && !keep ? end_handle(handle, view.work) : RING_OK;
    comm_unlock(view.comm);
    if (!*done && crowded)
        wait_yield(); /* else whoever tests keeps the core from those that it waits for */
    return status;
}

ring_status ring_test(ring_work **handle, int *done)
{
    bool over;
    if (handle == NULL || done == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_test: work or done is NULL");
    const ring_status status = test_one(handle, "test", false, &over);
    *done = over;
    return status;
}

ring_status ring_test_all(ring_work **works, size_t count, int *done)
{
    if (done == NULL || (works == NULL && count > 0))
        return fail(RING_ERR_ARGUMENT, "ring_test_all: works or done is NULL");
    *done = 1;
    for (size_t i = 0; i < count && *done; i++) {
        bool over;
        RING_TRY(test_one(&works[i], "test_all", true, &over));
        *done = over;
    }
    return *done ? ring_wait_all(works, count) : RING_OK;
}

/* @return the first that is over, or count. */
static ring_status find_ended(ring_work **works, size_t count, size_t *index, bool *any)
{
    *any = false;
    for (*index = 0; *index < count; ++*index) {
        bool over;
        if (works[*index] == NULL)
            continue;
        *any = true;
        RING_TRY(test_one(&works[*index], "wait_any", true, &over));
        if (over)
            return RING_OK;
    }
    return RING_OK;
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

ring_status ring_wait_any(ring_work **works, size_t count, size_t *index)
{
    bool any = true;
    unsigned looks = 0;
    double since = clock_now(), next_look = since + GATE_LOOK_SECONDS;
    if (index == NULL || (works == NULL && count > 0))
        return fail(RING_ERR_ARGUMENT, "ring_wait_any: works or index is NULL");
    RING_TRY(call_group_refuse("wait_any"));
    for (*index = count; any && *index == count;) {
        RING_TRY(find_ended(works, count, index, &any));
        if (!any || *index < count)
            break;
        wait_between_looks(&looks);
        if (is_in_vain(works, count, &since, &next_look))
            return fail(RING_IN_PROGRESS, "ring_wait_any: no event that its calls wait for was set "
                                          "within their time-out; the calls go on");
    }
    return *index < count ? ring_wait(&works[*index]) : RING_OK;
}
