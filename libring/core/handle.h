/* SPDX-License-Identifier: Apache-2.0
 *
 * handle: a caller's reference to a work. A handle is the number of a slot and the slot's
 * generation in one table of the process, so the use of an ended handle is noticed and never means
 * another work; it outlives its communicator.
 */
#ifndef RING_CORE_HANDLE_H
#define RING_CORE_HANDLE_H

#include "base.h"

struct work;

/** The state of a handle. */
typedef struct handle_view {
    ring_comm *comm; /* NULL: its communicator is gone, `status` says how the call ended */
    struct work *work;
    ring_status status;
} handle_view;

/** Gives @p work a handle. @param[out] slot  its number, for the work. */
ring_status handle_new(ring_comm *comm, struct work *work, uint32_t *slot, ring_work **out);
/** A call begins with a handle, which then means the same work until the call leaves it, even if
 *  another thread ends it meanwhile. @return RING_ERR_USAGE for a handle that has ended. */
ring_status handle_enter(const ring_work *handle, const char *call);
/** @return the work, or the result, of a handle that the caller has entered. */
handle_view handle_look(const ring_work *handle);
/** The call is over. @param ends  the handle cannot be entered any more.
 *  @return true for the last call in a handle that has ended: the work is free. */
bool handle_leave(const ring_work *handle, bool ends);
/** The work's communicator is destroyed: the handle keeps its result. */
void handle_orphan(uint32_t index, ring_status status);

#endif
