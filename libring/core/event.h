/* SPDX-License-Identifier: Apache-2.0
 *
 * event: implements the flag for which a call waits before it starts (ring_call.after). An event is
 * set once. Works that wait for it poll it, and setting it wakes the threads that sleep on them.
 */
#ifndef RING_CORE_EVENT_H
#define RING_CORE_EVENT_H

#include "base.h"

/** Adds a reference. @return @p event. */
ring_event *event_hold(ring_event *event);
void event_drop(ring_event *event);
/** @return RING_IN_PROGRESS, or the status that was set. One atomic load. */
ring_status event_status(const ring_event *event);
/** Registers the function that is called, without locks, whenever an event is set. Call it once per
 *  process. */
void event_on_set(void (*wake)(void));

#endif
