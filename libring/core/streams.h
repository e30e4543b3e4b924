/* SPDX-License-Identifier: Apache-2.0
 *
 * streams: runs calls in the order of an accelerator's stream (ring_call.stream). The stream waits
 * at a stop (accelerator_stop). The works of the call are gated until the stream reaches the stop,
 * and the last of them to drop the stop lets the stream continue.
 */
#ifndef RING_CORE_STREAMS_H
#define RING_CORE_STREAMS_H

#include "prepared.h"

/** Checks that the call may run on its stream, and finds the stream's accelerator and whether the
 *  stream is being captured. @return RING_OK, or RING_ERR_UNSUPPORTED with the reason. */
ring_status stream_check(prepared_call *c);
/** @return RING_ERR_UNSUPPORTED if the call is captured, and a graph cannot keep its options. */
ring_status stream_check_capture(const prepared_call *c);

/** @return the accelerator whose streams order the call: that of its stream, or, for a call without
 *  a stream on memory of an accelerator, that of the memory; NULL if none does. */
const accelerator *stream_orders(const prepared_call *c);
/** Puts a stop, c->stop, into the call's stream. A call without a stream gets a mark after all work
 *  of the default stream, or nothing if there is no such work. The caller holds no lock, because
 *  this may block until the stream has room. */
ring_status stream_stop(prepared_call *c);

/** @return true if streams stay stopped at calls that have failed (RING_HOLD_STREAMS), until this
 *  rank aborts, shrinks or destroys the communicator. */
static inline bool streams_stay(const ring_comm *comm)
{
    return comm->settings.hold_streams && !comm->streams.released;
}

/** Makes the caller the only holder of a stop of @p by. */
static inline void stop_begin(accelerator_stop *stop, const accelerator *by, bool is_mark)
{
    stop->by = by;
    stop->is_mark = is_mark;
    atomic_init(&stop->holders, 1);
}
/** Adds a holder. @return @p stop. */
static inline accelerator_stop *stop_hold(accelerator_stop *stop)
{
    atomic_fetch_add_explicit(&stop->holders, 1, memory_order_relaxed);
    return stop;
}
/** Drops a holder, and sets the pointer to NULL; it may be NULL. The last one resumes the stream.
 */
static inline void stop_drop(accelerator_stop **stop)
{
    accelerator_stop *s = *stop;
    *stop = NULL;
    if (s != NULL && atomic_fetch_sub_explicit(&s->holders, 1, memory_order_acq_rel) == 1)
        s->by->resume(s);
}

#endif
