/* SPDX-License-Identifier: Apache-2.0
 * All kept calls of the process are in one list, so that a communicator that goes is forgotten
 * wherever it is. */
#include "prepared.h"

#include <stdlib.h>

/* Locked after a communicator, never before. */
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

prepared_call *prepared_keep(const prepared_call *call)
{
    prepared_call *c = malloc(sizeof *c);
    if (c == NULL)
        return NULL;
    *c = *call;
    c->call.shape = NULL;
    c->stays = NULL;
    c->next = NULL;
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
    free(c);
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
