/* SPDX-License-Identifier: Apache-2.0
 *
 * device_calls: calls that accelerators run themselves (accelerator_programs.h). Where each rank of
 * a communicator has an accelerator, and they reach each other, calls behind streams on their
 * memory become device programs. Such a call is a work like others, without ops of the host: it
 * ends when its run is over.
 */
#ifndef RING_CORE_DEVICE_CALLS_H
#define RING_CORE_DEVICE_CALLS_H

#include "accelerator_programs.h"
#include "lowering.h"
#include "prepared.h"

/** This rank's state in a communicator. */
struct device_calls {
    const accelerator *by;
    accelerator_seat *seat;
    accelerator_terms terms;
    bool aborted; /* and streams go on */
};

/** To be called when all works are over. */
void device_calls_close(ring_comm *comm);
/** Leaves the seat. */
void device_calls_end(struct device_calls *d);

/** Decides whether accelerators run the call, after stream_check(). */
ring_status device_call_choose(const prepared_call *c, bool *runs);
/** Limits for lowering such a program. */
lowering_limits device_call_limits(const ring_comm *comm);
/** Hands a lowered program to the accelerator; no ops of the host remain in it. */
ring_status device_call_keep(const ring_comm *comm, program *p);

/** Enqueues a run on the stream; if that is captured, the graph runs it at each replay, and no call
 *  is made now. The caller holds no lock. */
ring_status device_call_start(prepared_call *c);
/** @return RING_OK: the run is over; RING_IN_PROGRESS; or how it failed. */
ring_status device_call_advance(work *w);
/** @return true while the accelerator's own deadline is in force, not the engine's. */
bool device_call_is_timed(const work *w);
/** To be called while no call is under way. @return RING_OK, or how a graph's run failed. */
ring_status device_calls_check(const ring_comm *comm);
/** Ends runs if the communicator has failed. Any thread. */
void device_calls_wake(ring_comm *comm);
/** Ends the runs and resumes their streams. */
void device_calls_abort(ring_comm *comm);

#endif
