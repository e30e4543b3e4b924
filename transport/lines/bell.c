/* SPDX-License-Identifier: Apache-2.0
 * Implements bells, and keeps a table of this process's bells in which a link finds the bell of its
 * pair of ranks. */
#include "bell.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

struct bell {
    struct bell *next;
    transport_pair pair;
    uint64_t id; /* 0: not shared */
    int holders; /* number of references; guarded by the table's lock */
    int fd;
    atomic_bool gone;     /* the peer has closed the socket */
    pthread_mutex_t lock; /* guards `waiters` */
    bell_waiter *waiters;
};

/* All bells, oldest first. */
static struct {
    pthread_mutex_t lock;
    bell *first;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- The table --------------------------------------------------------------------- */

bell *bell_new(int fd, const transport_pair *pair, uint64_t id)
{
    bell *b = calloc(1, sizeof *b);
    if (b == NULL) {
        fd_close(&fd);
        return NULL;
    }
    b->pair = *pair;
    b->id = id;
    b->holders = 1;
    b->fd = fd;
    pthread_mutex_init(&b->lock, NULL);
    pthread_mutex_lock(&table.lock);
    bell **end = &table.first;
    while (*end != NULL)
        end = &(*end)->next;
    *end = b;
    pthread_mutex_unlock(&table.lock);
    return b;
}

static bool is_shared_by(const bell *b, const transport_pair *pair)
{
    return b->id != 0 && b->pair.owner == pair->owner && b->pair.peer == pair->peer &&
           !atomic_load(&b->gone);
}

bell *bell_find(const transport_pair *pair)
{
    if (pair->owner == NULL)
        return NULL;
    pthread_mutex_lock(&table.lock);
    bell *b = table.first;
    while (b != NULL && !is_shared_by(b, pair))
        b = b->next;
    if (b != NULL)
        b->holders++;
    pthread_mutex_unlock(&table.lock);
    return b;
}

void bell_drop(bell *b)
{
    if (b == NULL)
        return;
    pthread_mutex_lock(&table.lock);
    const bool last = --b->holders == 0;
    if (last) {
        bell **at = &table.first;
        while (*at != b)
            at = &(*at)->next;
        *at = b->next;
    }
    pthread_mutex_unlock(&table.lock);
    if (!last)
        return;
    fd_close(&b->fd);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

/* ---- Ringing and draining ------------------------------------------------------------ */

uint64_t bell_id(const bell *b)
{
    return b != NULL ? b->id : 0;
}

int bell_fd(const bell *b)
{
    return b->fd;
}

/* Failures need no handling: a full socket is readable and wakes the peer anyway, and a closed
 * socket has no peer to wake. */
void bell_ring(const bell *b)
{
    const char byte = 0;
    const ssize_t ignored = send(b->fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)ignored;
}

bool bell_drain(bell *b)
{
    char bytes[64];
    pthread_mutex_lock(&b->lock);
    const ssize_t got = recv(b->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        atomic_store(&b->gone, true);
    for (const bell_waiter *s = got >= 0 ? b->waiters : NULL; s != NULL; s = s->next) {
        const bell_flags *f = &s->flags;
        const bool cleared = (f->in != NULL && atomic_load(f->in) == 0) ||
                             (f->out != NULL && atomic_load(f->out) == 0);
        if (s->pair->wake != NULL && (got == 0 || cleared))
            s->pair->wake(s->pair->context);
    }
    pthread_mutex_unlock(&b->lock);
    return !atomic_load(&b->gone);
}

/* ---- Sleeping ------------------------------------------------------------------------- */

void bell_add_waiter(bell *b, bell_waiter *s, const bell_flags *flags)
{
    pthread_mutex_lock(&b->lock);
    s->flags = *flags;
    if (!s->listed) {
        s->next = b->waiters;
        b->waiters = s;
        s->listed = true;
    }
    pthread_mutex_unlock(&b->lock);
}

void bell_remove_waiter(bell *b, bell_waiter *s)
{
    pthread_mutex_lock(&b->lock);
    if (s->listed) {
        bell_waiter **at = &b->waiters;
        while (*at != s)
            at = &(*at)->next;
        *at = s->next;
        s->listed = false;
    }
    pthread_mutex_unlock(&b->lock);
}
