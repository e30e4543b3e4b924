/* SPDX-License-Identifier: Apache-2.0
 *
 * event: what a call may wait for. It is set once; the works that wait look at it, and a set
 * event wakes whoever sleeps over them.
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
