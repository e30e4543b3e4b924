/* SPDX-License-Identifier: Apache-2.0
 *
 * wakeup_fd: eventfds that wake sleeping threads, kept for the next sleep. A communicator has one
 * only while threads sleep on it, so descriptors grow with the threads of a process and not with
 * its communicators. */
#ifndef RING_CORE_WAKEUP_FD_H
#define RING_CORE_WAKEUP_FD_H

typedef struct wakeup_fd {
    struct wakeup_fd *next;
    int fd;
} wakeup_fd;

/** A communicator that may take them exists. The first one makes those of a caller and of the
 *  progress thread in advance, if it can, so that later sleeps make none. */
void wakeup_fds_open(void);
/** The last one closes all. */
void wakeup_fds_close(void);

/** @return one that is not readable, NULL: no descriptor or memory is left. It is not closed before
 *  the last wakers_close(), so a thread that is late may still write to it. */
wakeup_fd *wakeup_fd_take(void);
/** NULL is allowed. */
void wakeup_fd_give_back(wakeup_fd *w);
/** Any thread, also of one that was given back: then a later sleep ends early. */
void wakeup_fd_signal(const wakeup_fd *w);

#endif
