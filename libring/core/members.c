/* SPDX-License-Identifier: Apache-2.0
 *
 * The communicators of this process, and their orphans: works under way without a waiting thread.
 * The progress thread moves orphans (progress_thread.c), and so do threads that wait for other
 * works. So communicators may be waited for in any order, and a call that was started ends while
 * its caller computes.
 */
#include "comm.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t left;
    ring_comm *first;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

/* In a child: the communicators are the parent's, and one of its threads may have held the lock. */
static void in_child(void)
{
    pthread_mutex_init(&process.lock, NULL);
    pthread_cond_init(&process.left, NULL);
    process.first = NULL;
    works_forget_orphans();
    progress_forget();
}

/* ---- Visits ------------------------------------------------------------------------ */

static bool has_orphans(const ring_comm *comm)
{
    return atomic_load_explicit(&comm->orphans, memory_order_relaxed) > 0;
}

/* The process's lock is held. */
static void let_go(ring_comm *comm)
{
    if (--comm->visitors == 0)
        pthread_cond_broadcast(&process.left);
}

ring_comm *members_next(ring_comm *last)
{
    pthread_mutex_lock(&process.lock);
    ring_comm *c = last != NULL ? last->next_member : process.first;
    while (c != NULL && !has_orphans(c))
        c = c->next_member;
    if (c != NULL)
        c->visitors++;
    if (last != NULL)
        let_go(last);
    pthread_mutex_unlock(&process.lock);
    return c;
}

void members_hold(ring_comm *comm)
{
    pthread_mutex_lock(&process.lock);
    comm->visitors++;
    pthread_mutex_unlock(&process.lock);
}

void members_let_go(ring_comm *comm)
{
    pthread_mutex_lock(&process.lock);
    let_go(comm);
    pthread_mutex_unlock(&process.lock);
}

bool members_try_lock(ring_comm *comm)
{
    if (atomic_load(&comm->wanting) > 0 || comm_has_waiters(comm) ||
        pthread_mutex_trylock(&comm->lock) != 0)
        return false;
    if (!comm_has_waiters(comm))
        return true;
    comm_unlock(comm);
    return false;
}

/* Locked; releases the lock. */
static bool take_turn(ring_comm *comm)
{
    const bool moved = engine_turn(comm, BACKGROUND_TURN_BYTES);
    if (!moved)
        engine_look(comm, clock_now());
    comm_unlock(comm);
    return moved;
}

visit members_visit(ring_comm *comm)
{
    if (!members_try_lock(comm))
        return VISIT_LEFT;
    return take_turn(comm) ? VISIT_MOVED : VISIT_IN_VAIN;
}

void members_help(const ring_comm *except)
{
    if (!works_have_orphans())
        return;
    for (ring_comm *c = members_next(NULL); c != NULL; c = members_next(c))
        if (c != except)
            (void)members_visit(c);
}

/* ---- Membership --------------------------------------------------------------------- */

static void wake_sleepers(void)
{
    pthread_mutex_lock(&process.lock);
    for (ring_comm *c = process.first; c != NULL; c = c->next_member)
        sleeper_wake(c);
    pthread_mutex_unlock(&process.lock);
}

/* A ticket was closed, by a thread that does not move works itself. */
static void on_ticket(void)
{
    wake_sleepers();
    if (works_have_orphans())
        progress_kick();
}

/* Starts works behind a set event. Where another thread holds the lock and has seen the gate
 * closed, the progress thread looks again, or this one does. */
static void start_gated(void)
{
    for (ring_comm *c = members_next(NULL); c != NULL; c = members_next(c)) {
        if (c->by_thread) {
            (void)members_visit(c);
        } else {
            comm_lock(c);
            (void)take_turn(c);
        }
    }
}

/* An event was set: wakes sleeping threads, and starts orphans behind it. */
static void on_event(void)
{
    wake_sleepers();
    start_gated();
    if (works_have_orphans())
        progress_kick();
}

void members_add(ring_comm *comm)
{
    pthread_mutex_lock(&process.lock);
    comm->next_member = process.first;
    process.first = comm;
    pthread_mutex_unlock(&process.lock);
    if (!comm->by_thread)
        return;
    progress_enter();
    if (has_orphans(comm)) /* since before it was here */
        progress_kick();
}

/* @return false if it was not there. The process's lock is held. */
static bool take_out(ring_comm *comm)
{
    ring_comm **at = &process.first;
    while (*at != NULL && *at != comm)
        at = &(*at)->next_member;
    if (*at == NULL)
        return false;
    *at = comm->next_member;
    comm->next_member = NULL; /* members_next() ends at this one */
    return true;
}

void members_remove(ring_comm *comm)
{
    pthread_mutex_lock(&process.lock);
    const bool was_here = take_out(comm);
    if (comm->visitors > 0)
        progress_kick(); /* a visitor may sleep on it */
    while (comm->visitors > 0)
        pthread_cond_wait(&process.left, &process.lock);
    pthread_mutex_unlock(&process.lock);
    if (was_here && comm->by_thread)
        progress_exit();
}

/* ---- Once a process ------------------------------------------------------------------ */

__attribute__((constructor)) static void set_up(void)
{
    pthread_atfork(NULL, NULL, in_child);
    event_on_set(on_event);
    ticket_on_wake(on_ticket);
}
