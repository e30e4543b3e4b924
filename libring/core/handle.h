/* SPDX-License-Identifier: Apache-2.0
 *
 * handle: implements ring_work, a caller's reference to a work. A handle holds the number of a slot
 * in a table of the process and the generation of that slot, so that an ended handle is rejected
 * and never refers to another work. Handles outlive their communicators.
 */
#ifndef RING_CORE_HANDLE_H
#define RING_CORE_HANDLE_H

#include "base.h"

struct work;

/** The state of a handle. */
typedef struct handle_view {
    ring_comm *comm; /* NULL: it was destroyed, and `status` is the result of the call */
    struct work *work;
    ring_status status;
} handle_view;

/** Creates a handle for @p work. @param[out] slot  its slot, for handle_orphan(). */
ring_status handle_new(ring_comm *comm, struct work *work, uint32_t *slot, ring_work **out);
/** Starts using a handle. It refers to the same work until handle_leave(), even if another thread
 *  ends the handle. @param call  the caller's name, for the error.
 *  @return RING_ERR_USAGE if the handle has ended. */
ring_status handle_enter(const ring_work *handle, const char *call);
/** @return the work or the result of a handle that the caller has entered. */
handle_view handle_look(const ring_work *handle);
/** Stops using a handle. @param ends  end the handle, so that no call can enter it any more.
 *  @return true for the last user of a handle that has ended, who may recycle the work. */
bool handle_leave(const ring_work *handle, bool ends);
/** Stores the result in the handle of slot @p index, because the work's communicator is being
 *  destroyed. */
void handle_orphan(uint32_t index, ring_status status);

#endif
