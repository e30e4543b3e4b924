/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs engine turns for orphans. The progress thread (progress_loop.c) advances orphans so that
 * calls end while their callers compute. A thread that waits for a work advances the orphans of
 * other communicators, so that threads may wait for communicators in any order.
 */
#include "orphans.h"

#include "engine.h"
#include "event.h"
#include "members.h"
#include "progress_thread.h"

/* The caller holds the lock, which this function releases. */
static bool take_turn(ring_comm *comm)
{
    const bool moved = engine_turn(comm, BACKGROUND_TURN_BYTES);
    if (!moved)
        engine_look(comm, clock_now());
    comm_unlock(comm);
    return moved;
}

orphans_turn orphans_advance(ring_comm *comm)
{
    if (!comm_try_lock(comm))
        return ORPHANS_BUSY;
    return take_turn(comm) ? ORPHANS_MOVED : ORPHANS_IDLE;
}

void orphans_advance_others(const ring_comm *except)
{
    if (!orphans_are_left())
        return;
    for (ring_comm *c = members_next(NULL); c != NULL; c = members_next(c))
        if (c != except)
            (void)orphans_advance(c);
}

/* Starts works whose event was set. If another thread holds a communicator's lock, it may have
 * found the gate still closed, so the work must be checked again. The progress thread does this; if
 * it does not serve the communicator, this thread waits for the lock. */
static void start_gated(void)
{
    for (ring_comm *c = members_next(NULL); c != NULL; c = members_next(c)) {
        if (c->sleep.by_thread) {
            (void)orphans_advance(c);
        } else {
            comm_lock(c);
            (void)take_turn(c);
        }
    }
}

/* Called when an event was set. Wakes sleeping threads, and starts orphans that waited for it. */
static void on_event(void)
{
    members_wake();
    start_gated();
    if (orphans_are_left())
        progress_kick();
}

__attribute__((constructor)) static void set_up(void)
{
    event_on_set(on_event);
}
