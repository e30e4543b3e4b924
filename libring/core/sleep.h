/* SPDX-License-Identifier: Apache-2.0
 *
 * sleep: puts threads to sleep until a link of their communicator has news, and wakes them. A
 * thread polls the links of all active channels and an eventfd of its own (wakeup_fd.h).
 */
#ifndef RING_CORE_SLEEP_H
#define RING_CORE_SLEEP_H

#include "comm.h"
#include "wakeup_fd.h"

#include <poll.h>

/** The sleep of a communicator's threads. */
struct sleeping_threads {
    pthread_mutex_t lock; /* of the naps */
    struct sleeping_thread *first;
    /* Guarded by ring_comm.lock: */
    int sleepers; /* threads in poll, or about to be */
    int callers;  /* of them, those that are not the progress thread */
};

/** One thread's sleep on a communicator. */
typedef struct sleeping_thread {
    struct sleeping_thread *next;
    const wakeup_fd *by; /* the thread's; NULL: there is none, and it does not sleep */
} sleeping_thread;

ring_status sleep_new(ring_comm *comm);
/** A look at all that wakes sleepers begins: what came before does not keep them awake. */
static inline void sleep_look(ring_comm *comm)
{
    comm->sleep.wakes_seen = atomic_load_explicit(&comm->sleep.wakes, memory_order_acquire);
}
/** The caller is about to sleep, also on by->fd. @return false: it has to look first. */
bool sleep_begin(ring_comm *comm, sleeping_thread *n, const wakeup_fd *by);
void sleep_end(ring_comm *comm, const sleeping_thread *n);
void sleep_free(ring_comm *comm);
/** Ends sleeps of this communicator's threads. Any thread. */
void sleep_wake(void *context);
/** The same if a caller sleeps. */
void sleep_wake_callers(ring_comm *comm);
/** Marks all active channels: the progress thread is about to sleep on them. */
void sleep_mark_polled(ring_comm *comm);
/** @return true if the progress thread sleeps on every channel that works of @p comm wait for. */
bool sleep_polls_all(const ring_comm *comm);

/* ---- poll_links.c ---- */

/** Sleeps until a link of an active channel has news, for a fraction of a second at most. The lock
 *  is held on entry and on return, not in between. */
void poll_links(ring_comm *comm, double deadline);

typedef struct polled_comm {
    sleeping_thread self;
    ring_comm *comm;
} polled_comm;

/** A sleep on several communicators, and on other descriptors. */
typedef struct poll_list {
    bool calls;          /* for a caller: progress by other threads wakes it, too */
    bool awake;          /* something has happened already: do not sleep */
    double step;         /* the longest sleep, 0: no limit of its own */
    wakeup_fd *by;       /* of the present sleep; NULL: not taken yet, or there is none */
    polled_comm **comms; /* [comm_count] those that were entered */
    size_t comm_count, comm_room;
    struct pollfd *entries;
    size_t used, room;
} poll_list;

void poll_list_add_descriptor(poll_list *s, int fd);
/** The caller holds the lock of @p comm, which lives until the sleep is over. @return false: no
 *  memory to enter it. */
bool poll_list_add(poll_list *s, ring_comm *comm);
bool poll_list_has(const poll_list *s, const ring_comm *comm);
/** Sleeps as poll_links(), unless awake, and leaves the communicators. No lock is held. */
void poll_list_sleep(poll_list *s, double deadline);
void poll_list_free(poll_list *s);

#endif
