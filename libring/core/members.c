/* SPDX-License-Identifier: Apache-2.0
 * Keeps the list of the communicators of the process. A thread that walks the list holds the
 * communicator that it visits, so that it is not freed meanwhile. */
#include "members.h"

#include "progress_thread.h"
#include "sleep.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t left; /* signals that a communicator is not held any more */
    ring_comm *first;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

/* Empties the list in a forked child, because the communicators belong to the parent. Renews the
 * lock, because a thread of the parent may have held it at the fork. */
static void in_child(void)
{
    pthread_mutex_init(&process.lock, NULL);
    pthread_cond_init(&process.left, NULL);
    process.first = NULL;
    progress_forget();
}

/* ---- Iterating ----------------------------------------------------------------------- */

static bool has_orphans(const ring_comm *comm)
{
    return atomic_load_explicit(&comm->works.orphans, memory_order_relaxed) > 0;
}

/* The caller holds the lock of the list. */
static void let_go(ring_comm *comm)
{
    if (--comm->member.users == 0)
        pthread_cond_broadcast(&process.left);
}

/* As members_next(). The caller holds the lock of the list. */
static ring_comm *step(ring_comm *last, bool all)
{
    ring_comm *c = last != NULL ? last->member.next : process.first;
    while (c != NULL && !all && !has_orphans(c))
        c = c->member.next;
    if (c != NULL)
        c->member.users++;
    if (last != NULL)
        let_go(last);
    return c;
}

ring_comm *members_next(ring_comm *last)
{
    pthread_mutex_lock(&process.lock);
    ring_comm *c = step(last, false);
    pthread_mutex_unlock(&process.lock);
    return c;
}

ring_comm *members_next_at_exit(ring_comm *last, double deadline)
{
    if (!thread_lock_by(&process.lock, deadline))
        return NULL;
    ring_comm *c = step(last, true);
    pthread_mutex_unlock(&process.lock);
    return c;
}

void members_hold(ring_comm *comm)
{
    pthread_mutex_lock(&process.lock);
    comm->member.users++;
    pthread_mutex_unlock(&process.lock);
}

void members_let_go(ring_comm *comm)
{
    pthread_mutex_lock(&process.lock);
    let_go(comm);
    pthread_mutex_unlock(&process.lock);
}

/* ---- Membership --------------------------------------------------------------------- */

void members_wake(void)
{
    pthread_mutex_lock(&process.lock);
    for (ring_comm *c = process.first; c != NULL; c = c->member.next)
        sleep_wake(c);
    pthread_mutex_unlock(&process.lock);
}

void members_add(ring_comm *comm)
{
    pthread_mutex_lock(&process.lock);
    comm->member.next = process.first;
    process.first = comm;
    pthread_mutex_unlock(&process.lock);
    if (!comm->sleep.by_thread)
        return;
    progress_enter();
    if (has_orphans(comm)) /* from before it was in the list */
        progress_kick();
}

/* The caller holds the lock of the list. @return false if the communicator was not in it. */
static bool take_out(ring_comm *comm)
{
    ring_comm **at = &process.first;
    while (*at != NULL && *at != comm)
        at = &(*at)->member.next;
    if (*at == NULL)
        return false;
    *at = comm->member.next;
    comm->member.next = NULL; /* members_next() of a thread that holds it returns NULL */
    return true;
}

void members_remove(ring_comm *comm)
{
    pthread_mutex_lock(&process.lock);
    const bool was_here = take_out(comm);
    if (comm->member.users > 0)
        progress_kick(); /* the progress thread may hold it while it sleeps */
    while (comm->member.users > 0)
        pthread_cond_wait(&process.left, &process.lock);
    pthread_mutex_unlock(&process.lock);
    if (was_here && comm->sleep.by_thread)
        progress_exit();
}

__attribute__((constructor)) static void set_up(void)
{
    pthread_atfork(NULL, NULL, in_child);
}
