/* SPDX-License-Identifier: Apache-2.0
 * Keeps copies of calls that start later. All kept calls of the process are in one list, so that
 * prepared_forget() finds the calls of a communicator that is being destroyed. */
#include "prepared.h"

#include "event.h"
#include "streams.h"

#include <stdlib.h>
#include <string.h>

/* Lock order: a communicator's lock is taken before this one, never after it. */
static struct {
    pthread_mutex_t lock;
    prepared_call *first;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void publish(prepared_call *c)
{
    pthread_mutex_lock(&process.lock);
    c->later = process.first;
    c->link = &process.first;
    if (c->later != NULL)
        c->later->link = &c->later;
    process.first = c;
    pthread_mutex_unlock(&process.lock);
}

/* Copies the caller's lists, which are only valid during its call. */
static void keep_lists(prepared_call *c, size_t bytes)
{
    char *room = (char *)(c + 1);
    for (int side = 0; side < 2; side++) {
        const void *const **list = &c->buffers.lists[side];
        if (c->program == NULL)
            *list = NULL;
        if (*list != NULL)
            *list = memcpy(room + (size_t)side * bytes, *list, bytes);
    }
}

prepared_call *prepared_keep(const prepared_call *call)
{
    const size_t bytes = (size_t)call->comm->ranks * sizeof(void *); /* size of a list */
    const bool listed = call->program != NULL && call->program->facts->uneven;
    prepared_call *c = malloc(sizeof *c + (listed ? 2 * bytes : 0));
    if (c == NULL)
        return NULL;
    *c = *call;
    keep_lists(c, bytes);
    c->call.shape = NULL;
    c->stop = NULL;
    c->stays = NULL;
    c->next = c->partner = NULL;
    if (c->program != NULL)
        atomic_fetch_add(&c->program->kept, 1);
    if (c->options.after != NULL)
        event_hold(c->options.after);
    publish(c);
    return c;
}

void prepared_drop(prepared_call *c)
{
    pthread_mutex_lock(&process.lock);
    *c->link = c->later;
    if (c->later != NULL)
        c->later->link = c->link;
    if (c->program != NULL)
        atomic_fetch_sub(&c->program->kept, 1);
    pthread_mutex_unlock(&process.lock);
    event_drop(c->options.after);
    stop_drop(&c->stop);
    free(c);
}

void prepared_drop_all(prepared_call *calls)
{
    for (prepared_call *next; calls != NULL; calls = next) {
        next = calls->next;
        prepared_drop(calls);
    }
}

static void forget(prepared_call *c)
{
    c->comm = NULL;
    c->program = NULL;
}

void prepared_forget(const ring_comm *comm)
{
    pthread_mutex_lock(&process.lock);
    for (prepared_call *c = process.first; c != NULL; c = c->later) {
        if (c->comm == comm)
            forget(c);
    }
    pthread_mutex_unlock(&process.lock);
}

void prepared_before_fork(void)
{
    pthread_mutex_lock(&process.lock);
}

void prepared_after_fork(bool in_child)
{
    for (prepared_call *c = process.first; in_child && c != NULL; c = c->later)
        forget(c);
    pthread_mutex_unlock(&process.lock);
}
