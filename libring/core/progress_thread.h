/* SPDX-License-Identifier: Apache-2.0
 *
 * progress_thread: one thread a process, for all its communicators of several ranks. It moves
 * orphans: works under way without a waiting thread.
 */
#ifndef RING_CORE_PROGRESS_THREAD_H
#define RING_CORE_PROGRESS_THREAD_H

#include "comm.h"

/** State shared by the thread's body (progress_loop.c) and its callers. */
typedef struct progress_state {
    void *(*body)(void *);
    pthread_mutex_t lock;
    pthread_t thread;
    size_t users; /* communicators */
    int bell;
    bool made, ending, failed;
    atomic_bool stopping;
    atomic_bool idle;   /* a kick must wake or make it: the thread sleeps, or there is none */
    atomic_bool kicked; /* while it was awake */
    accelerator_stop *_Atomic starts; /* of calls that graphs have come to, oldest first */
} progress_state;
extern progress_state progress;

/** Counts an orphan in or out, or another thing that needs progress without a waiting thread
 *  (a socket, a greeting): @p change 1 or -1. Any thread. */
void orphans_count(ring_comm *comm, int change);
/** @return true if any communicator of the process has orphans. */
bool orphans_are_left(void);

/** Counts a communicator in or out. The last one out ends the thread; the caller holds no lock. */
void progress_enter(void);
void progress_exit(void);
/** Has the thread serve a communicator of one rank, too, from here on: its works wait for streams.
 *  The caller holds the lock. */
void progress_serve(ring_comm *comm);
/** Wakes the thread, or makes it, because there may be orphans. Costs an exchange and a load while
 *  it is awake. Any thread, also under control's lock. */
void progress_kick(void);
/** The same where the thread moves orphans of @p comm. */
static inline void progress_call(const ring_comm *comm)
{
    if (comm->sleep.by_thread)
        progress_kick();
}
/** Has the thread start calls that a graph has come to. Any thread. @return false: there is no
 *  thread. */
bool progress_start(accelerator_stop *stop);
/** @return the next of them, off the list; NULL: none. */
accelerator_stop *progress_next_start(void);
/** For forked children. */
void progress_forget(void);

#endif
