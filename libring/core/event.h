/* SPDX-License-Identifier: Apache-2.0
 *
 * event: implements the flag for which a call waits before it starts (ring_call.after). An event is
 * set once. The engine polls the events of waiting works, and setting an event wakes all threads
 * that sleep until works move.
 */
#ifndef RING_CORE_EVENT_H
#define RING_CORE_EVENT_H

#include "base.h"

/** Adds a reference. @return @p event. */
ring_event *event_hold(ring_event *event);
/** Drops a reference; the last one frees the event. NULL is allowed. */
void event_drop(ring_event *event);
/** @return RING_IN_PROGRESS, or the status that was set. One atomic load. */
ring_status event_status(const ring_event *event);
/** Registers a function that is called whenever an event is set. The thread that sets the event
 *  calls it, and holds no locks of the library. Call event_on_set() once per process. */
void event_on_set(void (*wake)(void));

#endif
