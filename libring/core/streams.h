/* SPDX-License-Identifier: Apache-2.0
 *
 * streams: calls in the order of an accelerator's stream (ring_call.stream). The stream waits at a
 * stop (accelerator_stop). Works of the call are gated until the stream has come to the stop; the
 * last holder of the stop resumes the stream.
 */
#ifndef RING_CORE_STREAMS_H
#define RING_CORE_STREAMS_H

#include "prepared.h"

/** Checks that the call may stand behind its stream, and finds the stream's accelerator and whether
 *  a graph captures it. RING_ERR_UNSUPPORTED with the reason.
 */
ring_status stream_check(prepared_call *c);

/** Puts a stop into a stream that is not captured, c->stop. The caller holds no lock: the stream
 * may have no room. */
ring_status stream_stop(prepared_call *c);

/** Has the graph start calls behind one stream, by `next`, at each replay. They are dropped with
 *  it, or on failure. The caller holds no lock. */
ring_status stream_capture(prepared_call *calls);

/** One more holder. */
static inline accelerator_stop *stop_hold(accelerator_stop *stop)
{
    atomic_fetch_add_explicit(&stop->holders, 1, memory_order_relaxed);
    return stop;
}
/** Drops one holder; NULL is allowed. The last one resumes the stream. */
static inline void stop_drop(accelerator_stop **stop)
{
    accelerator_stop *s = *stop;
    *stop = NULL;
    if (s != NULL && atomic_fetch_sub_explicit(&s->holders, 1, memory_order_acq_rel) == 1)
        s->by->resume(s);
}

#endif
