/* SPDX-License-Identifier: Apache-2.0
 *
 * event: a flag that a call waits for before it starts (ring_call.after). It is set once; waiting
 * works poll it, and setting it wakes threads that sleep over them.
 */
#ifndef RING_CORE_EVENT_H
#define RING_CORE_EVENT_H

#include "base.h"

/** One more holder. */
ring_event *event_hold(ring_event *event);
void event_drop(ring_event *event);
/** @return RING_IN_PROGRESS, or what it was set to. One atomic load. */
ring_status event_status(const ring_event *event);
/** @param wake  called, without locks, whenever an event is set. Once a process. */
void event_on_set(void (*wake)(void));

#endif
