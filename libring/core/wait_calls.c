/* SPDX-License-Identifier: Apache-2.0
 * Implements the public calls that wait for or test handles: one handle, all of several, or any of
 * several; and the one that waits for all calls of a communicator. A call enters a handle before it
 * uses it, and leaves it afterwards (handle.h). */
#include "call_group.h"
#include "device_calls.h"
#include "engine.h"
#include "handle.h"
#include "sleep.h"
#include "wait.h"

#include <sched.h>

/* Seconds from which a wait has no deadline, so that sums with the clock are exact enough. */
static const double FOREVER = 1e9;

/* Recycles a work whose handle has ended and is in use by no thread. The caller holds the lock. */
static void drop_work(work *w)
{
    w->result.handle = 0;
    if (!w->result.pending)
        work_recycle(w);
}

/* Leaves a handle. The caller holds the communicator's lock, unless view->comm is NULL because the
 * communicator was destroyed. @param ends  also end the handle, which becomes NULL.
 * @return the result of the call. */
static ring_status end_handle(ring_work **handle, const handle_view *view, bool ends)
{
    work *w = view->comm != NULL ? view->work : NULL;
    const ring_status status = w != NULL ? w->result.status : view->status;
    if (handle_leave(*handle, ends) && w != NULL)
        drop_work(w);
    *handle = ends ? NULL : *handle;
    return status == RING_OK
               ? RING_OK
               : fail(status, "%s",
                      w != NULL ? view->comm->failure.text
                                : "the communicator failed or was destroyed before the call ended");
}

/* Takes the lock of the communicator of a handle that was entered. On RING_OK the lock is held,
 * unless view->comm is NULL because the communicator was destroyed. */
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
    drop_work(view.work);
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
        drop_work(view.work);
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
        return fail(RING_ERR_ARGUMENT, "ring_wait_for: seconds must be 0 or more");
    return wait_until(handle, clock_now() + seconds, true, "wait_for");
}

ring_status ring_wait_keep(ring_work *handle, double seconds)
{
    if (!(seconds >= 0))
        return fail(RING_ERR_ARGUMENT, "ring_wait_keep: seconds must be 0 or more");
    return wait_until(&handle, clock_now() + seconds, false, "wait_keep");
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

/* If a handle has already ended, that is the returned error, but the other calls are waited for. */
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

/* ---- All calls of a communicator ------------------------------------------------------ */

static ring_status flush(ring_comm *comm, double deadline)
{
    comm_lock(comm);
    ring_status status = wait_for_all(comm, deadline);
    device_calls_collect(comm);
    if (status == RING_OK && comm->failure.pending)
        status = RING_IN_PROGRESS;
    if (status == RING_OK)
        status = comm_verdict(comm);
    const bool crowded = comm->crowded;
    comm_unlock(comm);
    if (status == RING_IN_PROGRESS && crowded)
        sched_yield(); /* as in poll_entered() */
    return status == RING_OK || status == RING_IN_PROGRESS ? status
                                                           : fail(status, "%s", comm->failure.text);
}

ring_status ring_comm_flush(ring_comm *comm, double seconds)
{
    if (comm == NULL || !(seconds >= 0))
        return fail(RING_ERR_ARGUMENT, "ring_comm_flush: %s",
                    comm == NULL ? "comm is NULL" : "seconds must be 0 or more");
    RING_TRY(call_group_refuse("comm_flush"));
    if (call_group_is_paused())
        return fail(RING_ERR_USAGE,
                    "ring_comm_flush: an on_done function must not wait; the call whose end it "
                    "reports would wait for it");
    if (comm->generation == fork_generation() && atomic_load(&comm->starting))
        return RING_OK; /* calls wait for the start, so none has started */
    RING_TRY(comm_check_own(comm, "comm_flush"));
    return flush(comm, seconds < FOREVER ? clock_now() + seconds : 0);
}

/* ---- Testing ------------------------------------------------------------------------ */

/* Runs an engine turn for the work's communicator, unless the work has ended.
 * @param[in,out] moved  set to true if anything moved. @return true if the work has ended. */
static bool poll_work(const handle_view *view, bool *moved)
{
    ring_comm *comm = view->comm;
    if (view->work->result.finished)
        return true;
    const bool progressed = engine_turn(comm, TURN_BYTES);
    *moved |= progressed;
    if (!progressed && !view->work->result.finished)
        engine_look(comm, clock_now());
    return view->work->result.finished;
}

/* The result of polling a handle. */
typedef struct poll_result {
    bool over, moved;
    double patience; /* the timeout of a gated call; 0: the call is not gated and has a deadline */
} poll_result;

/* Polls a handle that was entered. */
static ring_status poll_entered(const ring_work *handle, const char *call, poll_result *seen)
{
    handle_view view;
    *seen = (poll_result){.over = true};
    RING_TRY(lock_handle(handle, call, &view));
    if (view.comm == NULL)
        return RING_OK;
    const bool crowded = view.comm->crowded;
    seen->over = poll_work(&view, &seen->moved);
    if (!seen->over && work_is_gated(view.work))
        seen->patience = view.work->wait.timeout;
    comm_unlock(view.comm);
    if (!seen->over && crowded)
        sched_yield(); /* a caller that tests in a loop must leave the core to the other ranks */
    return RING_OK;
}

/* Polls handles that were entered. @param[out] done  true if all calls have ended. */
static ring_status poll_each(ring_work *const *works, size_t count, const char *call, bool *done)
{
    *done = true;
    for (size_t i = 0; i < count && *done; i++) {
        poll_result seen = {.over = true};
        if (works[i] != NULL)
            RING_TRY(poll_entered(works[i], call, &seen));
        *done = seen.over;
    }
    return RING_OK;
}

/* If all calls have ended, ends their handles; otherwise only leaves them. */
static ring_status test_each(ring_work **works, size_t count, int *done, const char *call)
{
    bool over = true;
    *done = 0;
    RING_TRY(call_group_refuse(call));
    *done = 1;
    size_t entered = 0; /* handles before the first one that has already ended */
    while (entered < count &&
           (works[entered] == NULL || handle_enter(works[entered], call) == RING_OK))
        entered++;
    const ring_status status = entered == count ? poll_each(works, count, call, &over)
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

/** The state of a wait for any of several works. */
typedef struct choice {
    ring_work **works;
    size_t count, index; /* the first work that has ended; count if they are all in progress */
    size_t entered;      /* handles that were entered so far */
    bool any;            /* at least one handle is not NULL */
    bool moved;          /* the last pass made progress */
    double patience;     /* the longest timeout of the calls if all are gated, else 0 */
} choice;

/* Polls the works in order until one has ended, and enters handles that have not been entered. */
static ring_status find_ended(choice *c)
{
    bool gated = true;
    c->any = c->moved = false;
    c->patience = 0;
    for (c->index = 0; c->index < c->count; c->index++) {
        poll_result seen;
        if (c->works[c->index] == NULL)
            continue;
        c->any = true;
        if (c->index >= c->entered)
            RING_TRY(handle_enter(c->works[c->index], "wait_any"));
        c->entered = c->index < c->entered ? c->entered : c->index + 1;
        RING_TRY(poll_entered(c->works[c->index], "wait_any", &seen));
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

/* Adds or removes this thread as a waiting thread of the works, so that they are not orphans while
 * it waits. */
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

/* Adds the communicator of a handle to the poll list. From then on the end of the work or of the
 * communicator wakes this thread. Sets `awake` if either has already ended. */
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

/* Waits until a work has ended. Stops with RING_IN_PROGRESS if all calls have been gated for the
 * longest of their timeouts, because their events may never be set. */
static ring_status wait_until_any(choice *c)
{
    unsigned looks = 0;
    double since = 0; /* when all calls were first found gated; 0: at least one is not gated */
    for (;;) {
        RING_TRY(find_ended(c));
        if (is_decided(c))
            return RING_OK;
        if (c->moved)
            looks = 0;
        if (wait_between_looks(&looks))
            sleep_on_works(c);
        const double now = c->patience > 0 ? clock_now() : 0;
        since = now > 0 && since > 0 ? since : now;
        if (now > 0 && now - since >= c->patience)
            return fail(RING_IN_PROGRESS,
                        "ring_wait_any: none of the events for which the calls wait was set within "
                        "their timeout; the calls continue");
    }
}

/* Waits until a work has ended; find_ended() enters the handles as it reaches them. */
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
