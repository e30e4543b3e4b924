/* SPDX-License-Identifier: Apache-2.0
 *
 * control thread: one a process, for all its communicators. It sleeps in epoll on their descriptors
 * and on the earliest of their timers, and serves only sources with events.
 *
 * One lock guards all of control's state; the thread releases it to sleep. The holder of the lock
 * may watch, stop watching and free sources: an event of a source that is no longer watched is
 * dropped.
 */
#ifndef RING_CONTROL_THREAD_H
#define RING_CONTROL_THREAD_H

#include "control.h"

#include <sys/epoll.h>

#define CONTROL_NEVER 1e300

/** A membership, as the thread sees it. */
typedef struct control_client {
    int rank, size; /* for the log */
    double due;     /* when tick() is wanted, see control_due() */
    /** By the thread, the lock held. It is @p stall seconds late: this process was not running, and
     *  silence of its peers in that time does not count. */
    void (*tick)(struct control_client *c, double now, double stall);
    struct control_client *next;
} control_client;

/** A descriptor that is watched. */
typedef struct control_source {
    int fd; /* owned; -1: none */
    bool watched;
    uint32_t events;
    control_client *client;
    void (*ready)(struct control_source *s); /* by the thread, the lock held */
} control_source;

void control_lock(void);
void control_unlock(void);
/** Releases the lock until @p changed is signalled or @p deadline. @return false: deadline. */
bool control_wait(pthread_cond_t *changed, double deadline);

/** Has the thread serve @p c; the first one starts it. The lock is not held. */
ring_status control_enter(control_client *c);
/** The last one stops the thread. The lock is not held; not by the thread itself. */
void control_exit(control_client *c);

/** tick() no later than at @p moment. The lock is held here and below. */
void control_due(control_client *c, double moment);
/** Watches s->fd for @p events (EPOLLIN, EPOLLOUT, or 0: only errors). */
ring_status control_watch(control_source *s, uint32_t events);
/** Stops watching; the descriptor is the caller's. */
int control_release(control_source *s);
/** The same, and closes it. */
void control_close(control_source *s);

#endif
