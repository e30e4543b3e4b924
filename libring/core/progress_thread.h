/* SPDX-License-Identifier: Apache-2.0
 *
 * progress_thread: manages the one progress thread of the process, which serves all communicators
 * of several ranks. It advances orphans: works in flight that no thread waits for.
 */
#ifndef RING_CORE_PROGRESS_THREAD_H
#define RING_CORE_PROGRESS_THREAD_H

#include "comm.h"

/** State that the thread's loop (progress_loop.c) shares with its callers. */
typedef struct progress_state {
    void *(*body)(void *); /* the thread's loop, set by progress_loop.c */
    pthread_mutex_t lock;
    pthread_t thread;
    size_t users;         /* communicators that it serves */
    int bell;             /* the eventfd that wakes it */
    bool made;            /* the thread exists */
    bool ending;          /* the last user has left and waits for the end of the thread */
    bool failed;          /* the thread could not be created, and is not tried again */
    atomic_bool stopping; /* asks the loop to end */
    atomic_bool idle;     /* the thread sleeps or does not exist: a kick must wake or create it */
    atomic_bool kicked;   /* it was kicked while it was awake */
} progress_state;
extern progress_state progress;

/** Adds @p change, 1 or -1, to the number of orphans. Sockets and links that are not open yet count
 *  as well, because they need progress even if no thread waits. Any thread may call it. */
void orphans_count(ring_comm *comm, int change);
/** @return true if any communicator of the process has orphans. */
bool orphans_are_left(void);

/** Count the communicators that the thread serves. The last exit ends the thread. The caller holds
 *  no lock. */
void progress_enter(void);
void progress_exit(void);
/** Makes the thread serve a communicator of one rank as well, because its works wait for streams.
 *  The caller holds the communicator's lock. */
void progress_serve(ring_comm *comm);
/** Wakes or creates the thread, because there may be orphans. While the thread is awake, this costs
 *  an atomic exchange and a load. Any thread may call it, even with control's lock held. */
void progress_kick(void);
/** Kicks the thread if it serves @p comm. */
static inline void progress_call(const ring_comm *comm)
{
    if (comm->sleep.by_thread)
        progress_kick();
}
/** Resets the state in a forked child, which has no progress thread. */
void progress_forget(void);

#endif
