/* SPDX-License-Identifier: Apache-2.0
 * The only state that outlives a call: a list under a lock. */
#include "pending.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct pending {
    ring_unique_id id;
    int listener;
    pid_t maker;
    struct pending *next;
} pending;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pending *list;

ring_status pending_add(const ring_unique_id *id, int listener)
{
    pending *p = malloc(sizeof *p);
    if (p == NULL) {
        fd_close(&listener);
        return fail(RING_ERR_MEMORY, "making a unique id");
    }
    pthread_mutex_lock(&lock);
    *p = (pending){.id = *id, .listener = listener, .maker = getpid(), .next = list};
    list = p;
    pthread_mutex_unlock(&lock);
    return RING_OK;
}

static int take_locked(const ring_unique_id *id, bool only_copies)
{
    for (pending **at = &list; *at != NULL; at = &(*at)->next) {
        pending *p = *at;
        if (memcmp(&p->id, id, sizeof *id) != 0 || (only_copies && p->maker == getpid()))
            continue;
        const int listener = p->listener;
        *at = p->next;
        free(p);
        return listener;
    }
    return -1;
}

int pending_take(const ring_unique_id *id)
{
    pthread_mutex_lock(&lock);
    const int listener = take_locked(id, false);
    pthread_mutex_unlock(&lock);
    return listener;
}

void pending_forget_copy(const ring_unique_id *id)
{
    pthread_mutex_lock(&lock);
    int listener = take_locked(id, true);
    pthread_mutex_unlock(&lock);
    fd_close(&listener);
}
