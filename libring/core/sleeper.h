/* SPDX-License-Identifier: Apache-2.0
 * sleeper: sleeping until a link has news, and waking up. */
#ifndef RING_CORE_SLEEPER_H
#define RING_CORE_SLEEPER_H

#include "comm.h"

#include <poll.h>

/** The sleep of a communicator's threads. */
struct sleeper {
    _Atomic int wake_fd; /* -1: none */
    /* Guarded by ring_comm.lock: */
    int sleepers; /* threads in poll, or about to be */
    int callers;  /* of them, those that are not the progress thread */
};

ring_status sleeper_new(ring_comm *comm);
/** Makes the eventfd that wakes sleepers, on first use. @return true if it was there; else wake-ups
 *  before this were lost, and the caller looks again before it sleeps. */
bool sleeper_ready(ring_comm *comm);
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

/** A sleep on several communicators, and on other descriptors. */
typedef struct sleep_list {
    bool calls;        /* for a caller: progress by other threads wakes it, too */
    bool awake;        /* something has happened already: do not sleep */
    double step;       /* the longest sleep, 0: no limit of its own */
    ring_comm **comms; /* those that were entered */
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
