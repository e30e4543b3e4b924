/* SPDX-License-Identifier: Apache-2.0
 * The only state of control that outlives a communicator: a list under its own lock. */
#include "id_listener.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct id_listener {
    ring_unique_id id;
    int bound;
    pid_t maker;
    double expires;
    struct id_listener *next;
} id_listener;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static id_listener *list;

static int remove_locked(id_listener **at)
{
    id_listener *l = *at;
    const int bound = l->bound;
    *at = l->next;
    free(l);
    return bound;
}

double id_listener_expire(double now)
{
    double next = 1e300;
    pthread_mutex_lock(&lock);
    for (id_listener **at = &list; *at != NULL;) {
        if (now >= (*at)->expires) {
            int bound = remove_locked(at);
            fd_close(&bound);
            continue;
        }
        if ((*at)->expires < next)
            next = (*at)->expires;
        at = &(*at)->next;
    }
    pthread_mutex_unlock(&lock);
    return next;
}

ring_status id_listener_add(const ring_unique_id *id, int bound, double seconds)
{
    id_listener *l = malloc(sizeof *l);
    if (l == NULL) {
        fd_close(&bound);
        return fail(RING_ERR_MEMORY, "making a unique id");
    }
    pthread_mutex_lock(&lock);
    *l = (id_listener){.id = *id, .bound = bound, .maker = getpid(),
                       .expires = clock_now() + seconds, .next = list};
    list = l;
    pthread_mutex_unlock(&lock);
    return RING_OK;
}

static int take_locked(const ring_unique_id *id, bool only_copies)
{
    for (id_listener **at = &list; *at != NULL; at = &(*at)->next)
        if (memcmp(&(*at)->id, id, sizeof *id) == 0 && (!only_copies || (*at)->maker != getpid()))
            return remove_locked(at);
    return -1;
}

int id_listener_take(const ring_unique_id *id)
{
    pthread_mutex_lock(&lock);
    const int bound = take_locked(id, false);
    pthread_mutex_unlock(&lock);
    return bound;
}

void id_listener_forget_copy(const ring_unique_id *id)
{
    pthread_mutex_lock(&lock);
    int bound = take_locked(id, true);
    pthread_mutex_unlock(&lock);
    fd_close(&bound);
}
