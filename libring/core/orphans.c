/* SPDX-License-Identifier: Apache-2.0
 *
 * Moving orphans. The progress thread does it (progress_loop.c), and so do threads that wait for
 * other works. So communicators may be waited for in any order, and a call that was started ends
 * while its caller computes.
 */
#include "orphans.h"

#include "engine.h"
#include "event.h"
#include "members.h"
#include "progress_thread.h"

/* Locked; releases the lock. */
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

/* A ticket was closed, by a thread that does not move works itself. */
static void on_ticket(void)
{
    members_wake();
    if (orphans_are_left())
        progress_kick();
}

/* Starts works behind a set event. Where another thread holds the lock and has seen the gate
 * closed, the progress thread looks again, or this one does. */
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

/* An event was set: wakes sleeping threads, and starts orphans behind it. */
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
    ticket_on_wake(on_ticket);
}
