/* SPDX-License-Identifier: Apache-2.0
 *
 * wakeup_fd: keeps a pool of eventfds that wake sleeping threads. A thread takes an eventfd only
 * while it sleeps, so the number of eventfds depends on the threads of a process and not on its
 * communicators. */
#ifndef RING_CORE_WAKEUP_FD_H
#define RING_CORE_WAKEUP_FD_H

typedef struct wakeup_fd {
    struct wakeup_fd *next;
    int fd;
} wakeup_fd;

/** Counts a communicator as a user of the pool. The first one creates eventfds for a caller and for
 *  the progress thread in advance, if it can, so that later sleeps create none. */
void wakeup_fds_open(void);
/** Removes a communicator as a user of the pool. The last one closes all eventfds. */
void wakeup_fds_close(void);

/** @return an eventfd that is not readable; NULL if there is no descriptor or memory. It stays open
 *  until the last wakeup_fds_close(), so a late wakeup_fd_signal() does no harm. */
wakeup_fd *wakeup_fd_take(void);
/** Returns an eventfd to the pool; NULL is allowed. */
void wakeup_fd_give_back(wakeup_fd *w);
/** Makes the eventfd readable. Any thread may call it, even after the eventfd was given back. A
 *  later sleep may then end early. */
void wakeup_fd_signal(const wakeup_fd *w);

#endif
