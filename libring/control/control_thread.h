/* SPDX-License-Identifier: Apache-2.0
 *
 * control thread: runs one event loop per process for all communicators. The thread sleeps in epoll
 * on their descriptors until the earliest of their timers, and serves only sources with events.
 *
 * One lock guards all state of control; the thread releases it while it sleeps. The holder of the
 * lock may watch, stop watching and free sources: the loop drops the events of a source that is no
 * longer watched.
 */
#ifndef RING_CONTROL_THREAD_H
#define RING_CONTROL_THREAD_H

#include "control.h"

#include <sys/epoll.h>

#define CONTROL_NEVER 1e300

/** The part of a membership that the thread uses. */
typedef struct control_client {
    int rank, size; /* for the log */
    double due;     /* the time of the next tick(), see control_due() */
    /** Called by the thread under the lock, @p stall seconds late: in that time this process was
     * not running, so it must not count the silence of its peers. */
    void (*tick)(struct control_client *c, double now, double stall);
    struct control_client *next;
} control_client;

/** A descriptor that the thread may watch. */
typedef struct control_source {
    int fd; /* owned; -1: none */
    bool watched;
    uint32_t events;
    control_client *client;
    void (*ready)(struct control_source *s); /* called by the thread under the lock */
} control_source;

void control_lock(void);
void control_unlock(void);
/** Releases the lock until @p changed is signalled or @p deadline has passed.
 *  @return false after the deadline. */
bool control_wait(pthread_cond_t *changed, double deadline);

/** Registers @p c with the thread, which the first client starts. The lock must not be held. */
ring_status control_enter(control_client *c);
/** Removes @p c; the last client stops the thread. Must be called without the lock, and not by the
 *  thread itself. */
void control_exit(control_client *c);

/** Makes the thread call tick() at @p moment or earlier. This and the functions below need the
 *  lock. */
void control_due(control_client *c, double moment);
/** Watches s->fd for @p events (EPOLLIN, EPOLLOUT, or 0: only errors). */
ring_status control_watch(control_source *s, uint32_t events);
/** Stops watching. @return the descriptor, which the caller owns from now on. */
int control_release(control_source *s);
/** Stops watching and closes the descriptor. */
void control_close(control_source *s);

#endif
