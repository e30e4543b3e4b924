/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves the communicators of a process that exits without destroying them (RING_EXIT=leave), so
 * that the process does not count as a lost rank. Other threads may still run and may hold any
 * lock, and the drivers of accelerators may be gone: no lock is waited for without a deadline, no
 * driver is called, and nothing is freed.
 */
#include "channel_table.h"
#include "device_calls.h"
#include "members.h"

/* Seconds by which leaving may delay the exit. */
static const double exit_seconds = 1;
/* Seconds in which the progress thread may collect calls that have ended on an accelerator. */
static const double collect_seconds = 0.1;
/* Seconds in which links may send their last frames and announcements. */
static const double flush_seconds = 0.5;

/* Takes the lock of a communicator without calls in flight. */
static bool lock_at_rest(ring_comm *comm, double until)
{
    const double soon = clock_now() + collect_seconds, patience = soon < until ? soon : until;
    while (thread_lock_by(&comm->lock, until)) {
        if (comm->works.first == NULL && !comm->failure.pending)
            return true;
        pthread_mutex_unlock(&comm->lock);
        if (clock_now() >= patience)
            return false;
        clock_sleep(1e-3);
    }
    return false;
}

/* Sends the frames that links hold, and announces those that were consumed: peers may wait for
 * both. */
static void flush_links(ring_comm *comm, double until)
{
    channel *c;
    for (size_t at = 0; (c = channels_next(comm, &at)) != NULL;) {
        const transport *t = c->link->transport;
        ring_status status = RING_IN_PROGRESS;
        while ((channel_holds_frames(c) || (t->announced != NULL && !t->announced(c->link))) &&
               (status == RING_OK || status == RING_IN_PROGRESS) && clock_now() < until)
            status = t->progress(c->link);
    }
}

/* Makes later calls of other threads fail, and keeps them from calling the driver. */
static void end(ring_comm *comm)
{
    text_format(comm->failure.text, sizeof comm->failure.text,
                "rank %d (%s) has left the communicator, because its process exits (RING_EXIT)",
                comm->rank, comm_host(comm, comm->rank));
    atomic_store_explicit(&comm->failure.status, RING_ERR_ABORTED, memory_order_release);
    if (comm->device_calls != NULL)
        comm->device_calls->released = true;
}

static void leave(ring_comm *comm, double until)
{
    if (comm->settings.at_exit != EXIT_LEAVE || !lock_at_rest(comm, until))
        return;
    if (comm_is_fine(comm)) {
        flush_links(comm, until - exit_seconds + flush_seconds);
        end(comm);
    }
    pthread_mutex_unlock(&comm->lock);
    (void)control_leave_at_exit(comm->world, until);
}

/* Forked children have an empty list. */
__attribute__((destructor)) static void leave_all(void)
{
    ring_comm *c = NULL;
    const double until = clock_now() + exit_seconds;
    while ((c = members_next_at_exit(c, until)) != NULL)
        leave(c, until);
    while ((c = members_next_at_exit(c, until)) != NULL)
        if (c->settings.at_exit == EXIT_LEAVE)
            control_await_goodbye(c->world, until);
}
