/* SPDX-License-Identifier: Apache-2.0
 *
 * device_calls: lets accelerators run calls themselves (accelerator_programs.h). If each rank of a
 * communicator has an accelerator and these reach each other's memory, calls whose buffers are
 * in device memory become device programs. A device call is a work without ops for the host, which
 * ends when its run ends.
 */
#ifndef RING_CORE_DEVICE_CALLS_H
#define RING_CORE_DEVICE_CALLS_H

#include "accelerator_programs.h"
#include "lowering.h"
#include "prepared.h"

/** Bytes of a chunk or message that are worth one more lane. */
enum { LANE_BYTES = 64 << 10 };

/** This rank's state in a communicator. */
struct device_calls {
    const accelerator *by;
    accelerator_seat *seat;
    accelerator_terms terms;
    struct device_proxy *proxy; /* for ranks on other hosts; NULL: all are on this one */
    bool released;              /* its runs were ended and their streams resumed */
};

/** Frees the state of a communicator whose works have all ended. */
void device_calls_close(ring_comm *comm);
/** Detaches the seat and frees @p d. */
void device_calls_end(struct device_calls *d);

/** @return true if accelerators run the call. Call it after stream_check(). */
bool device_call_runs(const prepared_call *c);
/** @return RING_ERR_UNSUPPORTED, with the reason why a graph cannot keep a call that the host
 *  drives. */
ring_status device_call_refuse_capture(const prepared_call *c);
/** @return the limits for lowering a device program. */
lowering_limits device_call_limits(const ring_comm *comm);
/** Hands a lowered program to the accelerator, and removes its ops for the host. */
ring_status device_call_keep(const ring_comm *comm, program *p);

/** Enqueues a run on the call's stream, or on that of the seat. If the call waits for an event, the
 *  run is held by a stop, c->stop. If the stream is being captured, nothing runs now, and the graph
 *  runs it at each replay. The caller holds no lock.
 *  @param until  the time until which this waits for ranks that share the accelerator; < 0: it does
 *  not, and device_call_settle() must follow, also if later calls fail to start. */
ring_status device_call_start(prepared_call *c, double until);
/** Makes the call's stream wait for the end of its run if device_call_start() has only announced
 * the run. @param until  as in accelerator_programs.settle(). */
ring_status device_call_settle(const prepared_call *c, double until);
/** @return the time until which a call that starts now may wait for ranks that share its
 *  accelerator; 0 in an on_done function, in which other calls may depend on this thread. */
double device_call_patience(void);
/** @return RING_OK if the run has ended, RING_IN_PROGRESS, or the error with which it failed. */
ring_status device_call_advance(work *w);
/** @return a rank of this process for which the run waits, because it has not made the call; -1:
 *  there are none. */
int device_call_missing(const work *w);
/** @return true while the accelerator may check the deadline of a run that it has not ended. */
bool device_call_is_timed(const work *w);
/** Ends the communicator if a graph's replay has failed, which no work reports. While calls are in
 *  flight it does nothing, because one of them may have failed instead. */
void device_calls_collect(ring_comm *comm);
/** Ends the runs if the communicator has failed. Any thread may call it. */
void device_calls_wake(ring_comm *comm);
/** Ends the runs, and resumes their streams unless these stay stopped (streams_stay()). */
void device_calls_abort(ring_comm *comm);

#endif
