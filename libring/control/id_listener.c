/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the sockets of unique ids in a list of the process. The list is the only state of control
 * that does not belong to a membership.
 */
#include "id_listener.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct id_listener {
    ring_unique_id id;
    int bound;      /* the socket */
    pid_t maker;    /* the process that made the id; a forked child has a copy of the list */
    double expires; /* the time at which the socket is closed */
    struct id_listener *next;
} id_listener;

static id_listener *list;

/* @return the socket of the removed entry. */
static int remove_one(id_listener **at)
{
    id_listener *l = *at;
    const int bound = l->bound;
    *at = l->next;
    sodium_memzero(l, sizeof *l);
    free(l);
    return bound;
}

double id_listener_expire(double now)
{
    double next = 1e300;
    for (id_listener **at = &list; *at != NULL;) {
        if (now >= (*at)->expires) {
            int bound = remove_one(at);
            fd_close(&bound);
            continue;
        }
        if ((*at)->expires < next)
            next = (*at)->expires;
        at = &(*at)->next;
    }
    return next;
}

ring_status id_listener_add(const ring_unique_id *id, int bound, double seconds)
{
    id_listener *l = malloc(sizeof *l);
    if (l == NULL) {
        fd_close(&bound);
        return fail(RING_ERR_MEMORY, "no memory to make a unique id");
    }
    *l = (id_listener){.id = *id,
                       .bound = bound,
                       .maker = getpid(),
                       .expires = clock_now() + seconds,
                       .next = list};
    list = l;
    return RING_OK;
}

/* Removes the entry of @p id; with @p only_copies only if this process has not made it.
 * @return its socket; -1 if there is no such entry. */
static int take(const ring_unique_id *id, bool only_copies)
{
    for (id_listener **at = &list; *at != NULL; at = &(*at)->next)
        if (memcmp(&(*at)->id, id, sizeof *id) == 0 && (!only_copies || (*at)->maker != getpid()))
            return remove_one(at);
    return -1;
}

int id_listener_take(const ring_unique_id *id)
{
    return take(id, false);
}

void id_listener_forget_copy(const ring_unique_id *id)
{
    int bound = take(id, true);
    fd_close(&bound);
}
