/* SPDX-License-Identifier: Apache-2.0
 *
 * sleep: puts threads to sleep until works of their communicator may move, and wakes them. A
 * sleeping thread polls the links of all active channels and its own eventfd (wakeup_fd.h).
 */
#ifndef RING_CORE_SLEEP_H
#define RING_CORE_SLEEP_H

#include "comm.h"
#include "wakeup_fd.h"

#include <poll.h>

/** The threads that sleep on a communicator. */
struct sleeping_threads {
    pthread_mutex_t lock; /* guards the list */
    struct sleeping_thread *first;
    /* These members are guarded by ring_comm.lock. */
    int sleepers; /* threads in poll() or about to call it */
    int callers;  /* sleepers other than the progress thread */
};

/** One thread that sleeps on a communicator. */
typedef struct sleeping_thread {
    struct sleeping_thread *next;
    const wakeup_fd *by; /* the thread's eventfd; NULL: it has none and does not sleep */
} sleeping_thread;

ring_status sleep_new(ring_comm *comm);
/** Call this before checking all conditions for which threads are woken. A wake that precedes this
 *  call does not prevent a later sleep. */
static inline void sleep_look(ring_comm *comm)
{
    comm->sleep.wakes_seen = atomic_load_explicit(&comm->sleep.wakes, memory_order_acquire);
}
/** Lists the calling thread, which is about to poll by->fd, until sleep_end(). @return false if
 *  sleep_wake() was called since sleep_look(), so that the thread must check again. */
bool sleep_begin(ring_comm *comm, sleeping_thread *n, const wakeup_fd *by);
void sleep_end(ring_comm *comm, const sleeping_thread *n);
void sleep_free(ring_comm *comm);
/** Wakes the threads that sleep on a communicator. Any thread may call it.
 *  @param context  the ring_comm. */
void sleep_wake(void *context);
/** Wakes all sleeping threads unless the progress thread is the only one. The caller holds the
 *  lock. */
void sleep_wake_callers(ring_comm *comm);
/** Marks all active channels, because the progress thread is about to poll them. */
void sleep_mark_polled(ring_comm *comm);
/** @return true if the progress thread polls every channel on which works of @p comm wait. */
bool sleep_polls_all(const ring_comm *comm);

/* ---- poll_links.c ---- */

/** Sleeps until a frame arrives on an active channel, the thread is woken, or @p deadline, but at
 *  most a fraction of a second. The caller holds the lock, which is released during the sleep. */
void poll_links(ring_comm *comm, double deadline);

/** A communicator on which a thread with a poll_list sleeps. */
typedef struct polled_comm {
    sleeping_thread self;
    ring_comm *comm;
} polled_comm;

/** A list of communicators and other descriptors on which a thread sleeps. */
typedef struct poll_list {
    bool calls;    /* the thread is a caller, not the progress thread; sleep_wake_callers()
                      wakes it */
    bool awake;    /* do not sleep: a work may move already, or there is no memory */
    double step;   /* seconds of the longest sleep; 0: the default limit */
    wakeup_fd *by; /* the eventfd of the current sleep; NULL: not taken yet, or not available */
    polled_comm **comms; /* [comm_count] the communicators of the list */
    size_t comm_count, comm_room;
    struct pollfd *entries;
    size_t used, room;
} poll_list;

/** Adds a descriptor that ends the sleep when it becomes readable. */
void poll_list_add_descriptor(poll_list *s, int fd);
/** Adds a communicator, which must live until the sleep has ended. The caller holds its lock.
 *  @return false if there is no memory to add it. */
bool poll_list_add(poll_list *s, ring_comm *comm);
bool poll_list_has(const poll_list *s, const ring_comm *comm);
/** Sleeps like poll_links() unless `awake` is set, and then ends the sleep on each communicator.
 *  The caller holds no lock. */
void poll_list_sleep(poll_list *s, double deadline);
void poll_list_free(poll_list *s);

#endif
