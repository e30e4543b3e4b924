/* SPDX-License-Identifier: Apache-2.0
 *
 * control thread: runs one event loop per process, for all memberships. The thread sleeps in
 * epoll_wait() on their descriptors until the earliest of their timers, and then serves the sources
 * that have events and the clients whose timers are due.
 *
 * One lock guards all state of control; the thread releases it while it sleeps. Any holder of the
 * lock may watch, stop watching and free sources, since the loop drops the events of a source that
 * is no longer watched.
 */
#ifndef RING_CONTROL_THREAD_H
#define RING_CONTROL_THREAD_H

#include "control.h"

#include <sys/epoll.h>

#define CONTROL_NEVER 1e300

/** A user of the thread: the part of a membership that the thread accesses. */
typedef struct control_client {
    int rank, size; /* for the log */
    double due;     /* the time of the next tick(), see control_due() */
    /** Called by the thread under the lock when a timer is due. @param stall  the seconds by which
     *  the call is late, because the process did not run. It could not receive messages in this
     * time, so it must not count the time as a silence of its peers. */
    void (*tick)(struct control_client *c, double now, double stall);
    struct control_client *next;
} control_client;

/** A descriptor that the thread may watch. */
typedef struct control_source {
    int fd;                                  /* owned; -1: none */
    bool watched;                            /* it is registered with epoll */
    uint32_t events;                         /* for which it is registered */
    control_client *client;                  /* its owner */
    void (*ready)(struct control_source *s); /* called by the thread under the lock */
} control_source;

/** Acquire and release the lock. */
void control_lock(void);
void control_unlock(void);
/** As control_lock(), until @p deadline. @return false if the lock was not free by then. */
bool control_lock_by(double deadline);
/** Waits until @p changed is signalled or @p deadline has passed, and releases the lock meanwhile.
 *  @return false if the deadline has passed. */
bool control_wait(pthread_cond_t *changed, double deadline);

/** Registers @p c with the thread, and starts the thread for the first client. Must be called
 * without the lock. */
ring_status control_enter(control_client *c);
/** Removes @p c, and stops the thread after the last client. Must be called without the lock, and
 * not by the thread itself. */
void control_exit(control_client *c);
/** As control_exit(), by the thread itself in c->tick(), under the lock. The thread then ends by
 *  itself after the last client. */
void control_exit_by_tick(control_client *c);

/** Makes the thread call tick() at @p moment or earlier. The caller must hold the lock in this and
 * in the functions below. */
void control_due(control_client *c, double moment);
/** Watches s->fd for @p events: EPOLLIN, EPOLLOUT, or 0 for errors only. */
ring_status control_watch(control_source *s, uint32_t events);
/** Stops watching. @return the descriptor, which the caller owns from now on. */
int control_release(control_source *s);
/** Stops watching and closes the descriptor. */
void control_close(control_source *s);

#endif
