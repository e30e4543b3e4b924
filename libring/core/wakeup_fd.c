/* SPDX-License-Identifier: Apache-2.0
 * Keeps a pool of idle eventfds for threads that sleep. Each process has one pool, and a forked
 * child starts with an empty one. */
#include "wakeup_fd.h"

#include "base.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { IN_ADVANCE = 2 }; /* eventfds for a caller and for the progress thread */

static struct {
    pthread_mutex_t lock;
    unsigned generation; /* fork_generation() of the process that created the idle ones */
    int users;
    wakeup_fd *idle;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Takes the lock. In a forked child, also empties the pool, because the fork has closed the child's
 * copies of the descriptors (fd_guard()). */
static void lock_pool(void)
{
    pthread_mutex_lock(&pool.lock);
    if (pool.generation != fork_generation())
        pool.idle = NULL;
    pool.generation = fork_generation();
}

void wakeup_fds_close(void)
{
    lock_pool();
    const bool last = --pool.users == 0;
    wakeup_fd *idle = last ? pool.idle : NULL;
    if (last)
        pool.idle = NULL;
    pthread_mutex_unlock(&pool.lock);
    for (wakeup_fd *next; idle != NULL; idle = next) {
        next = idle->next;
        fd_close(&idle->fd);
        free(idle);
    }
}

static wakeup_fd *make(void)
{
    wakeup_fd *w = malloc(sizeof *w);
    if (w == NULL)
        return NULL;
    *w = (wakeup_fd){.fd = fd_guard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))};
    if (w->fd >= 0)
        return w;
    free(w);
    return NULL;
}

void wakeup_fds_open(void)
{
    lock_pool();
    const bool first = pool.users++ == 0;
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; first && i < IN_ADVANCE; i++)
        wakeup_fd_give_back(make());
}

wakeup_fd *wakeup_fd_take(void)
{
    lock_pool();
    wakeup_fd *w = pool.idle;
    if (w != NULL)
        pool.idle = w->next;
    pthread_mutex_unlock(&pool.lock);
    return w != NULL ? w : make();
}

void wakeup_fd_give_back(wakeup_fd *w)
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

void wakeup_fd_signal(const wakeup_fd *w)
{
    const uint64_t one = 1;
    const ssize_t ignored = write(w->fd, &one, sizeof one);
    (void)ignored; /* EAGAIN: it is already readable */
}
