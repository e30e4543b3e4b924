/* SPDX-License-Identifier: Apache-2.0
 *
 * wakers: eventfds on which threads sleep, kept for the next sleep. A communicator has one only
 * while threads sleep on it, so descriptors grow with the threads of a process and not with its
 * communicators. */
#ifndef RING_CORE_WAKERS_H
#define RING_CORE_WAKERS_H

typedef struct waker {
    struct waker *next;
    int fd;
} waker;

/** A communicator that may take wakers exists. The first one makes those of a caller and of the
 *  progress thread in advance, if it can, so that later sleeps make none. */
void wakers_open(void);
/** The last one closes all. */
void wakers_close(void);

/** @return one that is not readable, NULL: no descriptor or memory is left. It is not closed before
 *  the last wakers_close(), so a thread that is late may still write to it. */
waker *waker_take(void);
/** NULL is allowed. */
void waker_give_back(waker *w);
/** Any thread, also of one that was given back: then a later sleep ends early. */
void waker_wake(const waker *w);

#endif
