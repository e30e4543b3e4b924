/* SPDX-License-Identifier: Apache-2.0
 *
 * The communicators of this process, and who moves works that nobody waits for (orphans). Whoever
 * waits in vain for something else moves some; the control thread, asleep while there are none,
 * moves those that nobody has moved for a while. So communicators may be waited for in any
 * order, and a call that was started ends while its caller computes.
 */
#include "comm.h"

/* Seconds that works may stand still before the thread looks after them. */
static const double patience = 2e-3;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t left;
    ring_comm *first;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

/* The communicators are the parent's, and one of its threads may have held the lock. */
static void in_child(void)
{
    pthread_mutex_init(&process.lock, NULL);
    pthread_cond_init(&process.left, NULL);
    process.first = NULL;
    works_forget_orphans();
}

/* ---- Helping ---------------------------------------------------------------------- */

static bool has_orphans(const ring_comm *comm)
{
    return atomic_load_explicit(&comm->orphans, memory_order_relaxed) > 0;
}

/* The next communicator behind @p last that has orphans, held so that it is not freed.
 * @param still  only if it has not moved since its last visit. The caller holds the lock. */
static ring_comm *hold_next(ring_comm *last, const ring_comm *except, bool still)
{
    for (ring_comm *c = last != NULL ? last->next_member : process.first; c != NULL;
         c = c->next_member) {
        const uint64_t turns = atomic_load_explicit(&c->turns, memory_order_relaxed);
        const bool moved = c->turns_seen != turns;
        c->turns_seen = turns;
        if (c == except || !has_orphans(c) || (still && moved))
            continue;
        c->visitors++;
        return c;
    }
    return NULL;
}

static void visit(ring_comm *comm)
{
    if (pthread_mutex_trylock(&comm->lock) != 0)
        return; /* somebody is at it */
    if (comm->waiters == 0) {
        if (!engine_turn(comm, BACKGROUND_TURN_BYTES))
            engine_look(comm, clock_now());
    }
    comm_unlock(comm);
}

static void help(const ring_comm *except, bool still)
{
    pthread_mutex_lock(&process.lock);
    for (ring_comm *c = hold_next(NULL, except, still); c != NULL;) {
        pthread_mutex_unlock(&process.lock);
        visit(c);
        pthread_mutex_lock(&process.lock);
        ring_comm *next = hold_next(c, except, still);
        if (--c->visitors == 0)
            pthread_cond_broadcast(&process.left);
        c = next;
    }
    pthread_mutex_unlock(&process.lock);
}

void members_help(const ring_comm *except)
{
    if (works_have_orphans())
        help(except, false);
}

/* ---- The control thread ------------------------------------------------------------- */

static bool move_orphans(void)
{
    help(NULL, true);
    return works_have_orphans();
}

/* ---- Membership --------------------------------------------------------------------- */

static void wake_sleepers(void)
{
    pthread_mutex_lock(&process.lock);
    for (ring_comm *c = process.first; c != NULL; c = c->next_member)
        sleeper_wake(c);
    pthread_mutex_unlock(&process.lock);
}

/* A ticket was closed, by a thread that does nothing else: works are moved by others. */
static void on_ticket(void)
{
    wake_sleepers();
    if (works_have_orphans())
        control_kick();
}

/* An event was set: who sleeps looks, and what nobody waits for starts. */
static void on_event(void)
{
    wake_sleepers();
    help(NULL, false);
}

void members_add(ring_comm *comm)
{
    pthread_mutex_lock(&process.lock);
    comm->next_member = process.first;
    process.first = comm;
    pthread_mutex_unlock(&process.lock);
}

void members_remove(ring_comm *comm)
{
    pthread_mutex_lock(&process.lock);
    ring_comm **at = &process.first;
    while (*at != NULL && *at != comm)
        at = &(*at)->next_member;
    if (*at != NULL)
        *at = comm->next_member;
    comm->next_member = NULL; /* whoever visits this one goes no further */
    while (comm->visitors > 0)
        pthread_cond_wait(&process.left, &process.lock);
    pthread_mutex_unlock(&process.lock);
}

/* ---- Once a process ------------------------------------------------------------------ */

__attribute__((constructor)) static void set_up(void)
{
    pthread_atfork(NULL, NULL, in_child);
    control_set_task(move_orphans, patience);
    event_on_set(on_event);
    ticket_on_wake(on_ticket);
}
