/* SPDX-License-Identifier: Apache-2.0
 * Takes and releases the communicator's lock. Releasing the lock also calls the on_done functions
 * that are due, and wakes the progress thread if no other thread advances the orphans. */
#include "call_group.h"
#include "progress_thread.h"
#include "sleep.h"

/* @return the next work whose on_done is due, removed from the list. */
static work *next_done(ring_comm *comm)
{
    work *w = comm->works.done;
    if (w == NULL)
        return NULL;
    comm->works.done = w->result.next;
    if (comm->works.done == NULL)
        comm->works.done_end = &comm->works.done;
    w->result.pending = false;
    comm->works.told = w->number;
    return w;
}

RING_RARE void comm_lock_wait(ring_comm *comm)
{
    atomic_fetch_add(&comm->wanting, 1);
    pthread_mutex_lock(&comm->lock);
    atomic_fetch_sub(&comm->wanting, 1);
}

/* @return true if there are orphans that only the progress thread can advance. A thread that waits
 * for any work of the communicator advances all of its works. */
static bool leaves_orphans(const ring_comm *comm)
{
    return atomic_load_explicit(&comm->works.orphans, memory_order_relaxed) > 0 &&
           !comm_has_waiters(comm) && comm->sleep.by_thread && !sleep_polls_all(comm);
}

/* Only one thread at a time calls on_done functions, so that calls made in them do not nest on the
 * stack. */
void comm_unlock(ring_comm *comm)
{
    work *w;
    call_group kept;
    const bool tells = !comm->works.calls_done && comm->works.done != NULL;
    comm->works.calls_done |= tells;
    while (tells && (w = next_done(comm)) != NULL) {
        const ring_done on_done = w->result.on_done;
        void *context = w->result.context;
        const ring_status status = w->result.status;
        if (w->result.handle == 0)
            work_recycle(w);
        pthread_mutex_unlock(&comm->lock);
        call_group_pause(&kept); /* calls made in on_done are not part of this thread's group */
        on_done(context, status);
        call_group_resume(&kept);
        comm_lock(comm);
        comm->works.told = 0;
    }
    if (tells) {
        comm->works.calls_done = false;
        sleep_wake_callers(comm); /* ring_comm_flush() waits for on_done functions, too */
    }
    const bool leaves = leaves_orphans(comm);
    pthread_mutex_unlock(&comm->lock);
    if (leaves)
        progress_kick();
}

bool comm_try_lock(ring_comm *comm)
{
    if (atomic_load(&comm->wanting) > 0 || comm_has_waiters(comm) ||
        pthread_mutex_trylock(&comm->lock) != 0)
        return false;
    if (!comm_has_waiters(comm))
        return true;
    comm_unlock(comm);
    return false;
}
