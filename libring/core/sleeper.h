/* SPDX-License-Identifier: Apache-2.0
 * sleeper: sleeping until a link has news, and waking up. */
#ifndef RING_CORE_SLEEPER_H
#define RING_CORE_SLEEPER_H

#include "comm.h"
#include "wakers.h"

#include <poll.h>

/** The sleep of a communicator's threads. */
struct sleeper {
    pthread_mutex_t lock; /* of the naps */
    struct nap *naps;
    /* Guarded by ring_comm.lock: */
    int sleepers; /* threads in poll, or about to be */
    int callers;  /* of them, those that are not the progress thread */
};

/** One thread's sleep on a communicator. */
typedef struct nap {
    struct nap *next;
    const waker *by; /* the thread's; NULL: there is none, and it does not sleep */
} nap;

ring_status sleeper_new(ring_comm *comm);
/** A look at all that wakes sleepers begins: what came before does not keep them awake. */
static inline void sleeper_look(ring_comm *comm)
{
    comm->wakes_seen = atomic_load_explicit(&comm->wakes, memory_order_acquire);
}
/** The caller is about to sleep, also on by->fd. @return false: it has to look first. */
bool sleeper_begin(ring_comm *comm, nap *n, const waker *by);
void sleeper_end(ring_comm *comm, const nap *n);
void sleeper_free(ring_comm *comm);
/** Ends sleeps of this communicator's threads. Any thread. */
void sleeper_wake(void *context);
/** The same if a caller sleeps. */
void sleeper_stir(ring_comm *comm);
/** Marks all active channels: the progress thread is about to sleep on them. */
void sleeper_watch_all(ring_comm *comm);
/** @return true if the progress thread sleeps on every channel that works of @p comm wait for. */
bool sleeper_watches_all(const ring_comm *comm);

/* ---- sleeps.c ---- */

/** Sleeps until a link of an active channel has news, for a fraction of a second at most. The lock
 *  is held on entry and on return, not in between. */
void sleeper_sleep(ring_comm *comm, double deadline);

typedef struct comm_nap {
    nap nap;
    ring_comm *comm;
} comm_nap;

/** A sleep on several communicators, and on other descriptors. */
typedef struct sleep_list {
    bool calls;       /* for a caller: progress by other threads wakes it, too */
    bool awake;       /* something has happened already: do not sleep */
    double step;      /* the longest sleep, 0: no limit of its own */
    waker *by;        /* of the present sleep; NULL: not taken yet, or there is none */
    comm_nap **comms; /* [comm_count] those that were entered */
    size_t comm_count, comm_room;
    struct pollfd *entries;
    size_t used, room;
} sleep_list;

void sleep_list_add_descriptor(sleep_list *s, int fd);
/** The caller holds the lock of @p comm, which lives until the sleep is over. @return false: no
 *  memory to enter it. */
bool sleep_list_add(sleep_list *s, ring_comm *comm);
bool sleep_list_has(const sleep_list *s, const ring_comm *comm);
/** Sleeps as sleeper_sleep(), unless awake, and leaves the communicators. No lock is held. */
void sleep_list_sleep(sleep_list *s, double deadline);
void sleep_list_free(sleep_list *s);

#endif
