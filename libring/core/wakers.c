/* SPDX-License-Identifier: Apache-2.0
 * Idle eventfds of the process. */
#include "wakers.h"

#include "base.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { IN_ADVANCE = 2 };

static struct {
    pthread_mutex_t lock;
    unsigned generation; /* of the process that made the idle ones, see fork_generation() */
    int users;
    waker *idle;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A child must not sleep on what it shares with its parent; the fork has closed its copies. */
static void lock_pool(void)
{
    pthread_mutex_lock(&pool.lock);
    if (pool.generation != fork_generation())
        pool.idle = NULL;
    pool.generation = fork_generation();
}

static void close_all(waker *first)
{
    while (first != NULL) {
        waker *next = first->next;
        fd_close(&first->fd);
        free(first);
        first = next;
    }
}

void wakers_close(void)
{
    lock_pool();
    const bool last = --pool.users == 0;
    waker *idle = last ? pool.idle : NULL;
    if (last)
        pool.idle = NULL;
    pthread_mutex_unlock(&pool.lock);
    close_all(idle);
}

static waker *make(void)
{
    waker *w = malloc(sizeof *w);
    if (w == NULL)
        return NULL;
    *w = (waker){.fd = fd_guard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))};
    if (w->fd >= 0)
        return w;
    free(w);
    return NULL;
}

void wakers_open(void)
{
    lock_pool();
    const bool first = pool.users++ == 0;
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; first && i < IN_ADVANCE; i++)
        waker_give_back(make());
}

static waker *take_idle(void)
{
    lock_pool();
    waker *w = pool.idle;
    if (w != NULL)
        pool.idle = w->next;
    pthread_mutex_unlock(&pool.lock);
    return w;
}

waker *waker_take(void)
{
    waker *w = take_idle();
    return w != NULL ? w : make();
}

void waker_give_back(waker *w)
{
    uint64_t wakes;
    if (w == NULL)
        return;
    const ssize_t ignored = read(w->fd, &wakes, sizeof wakes);
    (void)ignored; /* EAGAIN: nothing was written */
    lock_pool();
    w->next = pool.idle;
    pool.idle = w;
    pthread_mutex_unlock(&pool.lock);
}

void waker_wake(const waker *w)
{
    const uint64_t one = 1;
    const ssize_t ignored = write(w->fd, &one, sizeof one);
    (void)ignored; /* EAGAIN: it is readable already */
}
