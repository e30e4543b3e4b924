/* SPDX-License-Identifier: Apache-2.0
 * Implements events, which are reference counted: the caller holds one reference, and each waiting
 * call holds another. */
#include "event.h"

#include <stdatomic.h>
#include <stdlib.h>

struct ring_event {
    _Atomic int status; /* RING_IN_PROGRESS until set */
    _Atomic int holders;
};

static void (*_Atomic on_set)(void);

void event_on_set(void (*wake)(void))
{
    atomic_store(&on_set, wake);
}

ring_status ring_event_create(ring_event **event)
{
    if (event == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_event_create: event is NULL");
    ring_event *e = malloc(sizeof *e);
    *event = e;
    if (e == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while creating an event");
    atomic_init(&e->status, RING_IN_PROGRESS);
    atomic_init(&e->holders, 1);
    return RING_OK;
}

ring_status ring_event_set(ring_event *event, ring_status status)
{
    int unset = RING_IN_PROGRESS;
    if (event == NULL || status == RING_IN_PROGRESS)
        return fail(RING_ERR_ARGUMENT,
                    "ring_event_set: event is NULL, or status is RING_IN_PROGRESS");
    if (!atomic_compare_exchange_strong(&event->status, &unset, (int)status))
        return fail(RING_ERR_USAGE, "ring_event_set: the event is already set");
    void (*wake)(void) = atomic_load(&on_set);
    if (wake != NULL)
        wake();
    return RING_OK;
}

void ring_event_destroy(ring_event *event)
{
    event_drop(event);
}

ring_event *event_hold(ring_event *event)
{
    atomic_fetch_add(&event->holders, 1);
    return event;
}

void event_drop(ring_event *event)
{
    if (event != NULL && atomic_fetch_sub(&event->holders, 1) == 1)
        free(event);
}

ring_status event_status(const ring_event *event)
{
    return (ring_status)atomic_load_explicit(&event->status, memory_order_acquire);
}
