/* SPDX-License-Identifier: Apache-2.0
 * init: creates a communicator over a world, both for the public ring_comm_init*() and for calls
 * that derive a communicator from another. */
#ifndef RING_CORE_INIT_H
#define RING_CORE_INIT_H

#include "comm.h"

/** Reads the caller's ring_config. @param given  NULL: none. @param call  for the error. */
ring_status comm_read_config(const ring_config *given, const char *call, ring_config *config);

/** Allocates a communicator, for comm_begin(). @return NULL if there is no memory. */
ring_comm *comm_alloc(int rank, int ranks);
/** As comm_new(), in a communicator of comm_alloc(), which the caller destroys after a failure. */
ring_status comm_begin(ring_comm *comm, control_world *world, const ring_comm *parent,
                       const accelerator *a, double started);
/** Reports to the other ranks, which may wait for this one, that the start has failed here with
 *  @p status and fail_text(). @return @p status. */
ring_status comm_report(ring_comm *comm, ring_status status);
/** Starts s->comm by s->create(), in a thread of its own. The communicator frees @p s, unless this
 *  fails. */
ring_status comm_start_apart(comm_start *s);

/** Creates a communicator over @p world, and takes ownership of @p world even if it fails.
 *  @param parent  the communicator from which it is derived; NULL: none.
 *  @param a  the accelerator that may run its calls; NULL: none.
 *  @param started  when the start began, in seconds of clock_now(). */
ring_status comm_new(control_world *world, const ring_comm *parent, const accelerator *a,
                     double started, ring_comm **out);

/** Creates a communicator of ranks of @p parent that have agreed on @p id. @param ranks  [count]
 *  ranks of the parent, in the order of their new ranks. */
ring_status comm_derive(ring_comm *parent, uint64_t id, const int *ranks, int count,
                        ring_comm **out);
/** Attaches a derived communicator to its accelerator. All of its ranks call it, when all have
 *  created their parts. After a failure the communicator is destroyed and set to NULL. */
ring_status comm_open_seat(const ring_comm *parent, ring_comm **comm);
/** Destroys a communicator that another rank could not create, and sets it to NULL, which it may
 *  already be. Keeps fail_text(). @return @p status. */
ring_status comm_undo(ring_comm **comm, ring_status status);

#endif
