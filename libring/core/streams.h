/* SPDX-License-Identifier: Apache-2.0
 *
 * streams: calls that take their place in a stream of an accelerator (ring_call.stream). The stream
 * stops there (accelerator_stop). Works of the call are gated until it has come to the stop, and
 * the last that holds the stop has the stream go on.
 */
#ifndef RING_CORE_STREAMS_H
#define RING_CORE_STREAMS_H

#include "prepared.h"

/** May the call stand behind its stream? Finds whose that is. RING_ERR_UNSUPPORTED with the reason.
 */
ring_status stream_check(prepared_call *c);

/** Has its stream stop: c->stop is held. The caller holds no lock, for the stream may have no room.
 *  @param[out] captured  it does not, for a graph captures it: stream_capture() is due. */
ring_status stream_stop(prepared_call *c, bool *captured);

/** Has the graph start calls behind one stream, by `next`, at each replay. They are dropped with
 *  it, or on failure. The caller holds no lock. */
ring_status stream_capture(prepared_call *calls);
/** A replay has come to them. By the progress thread. */
void stream_start(accelerator_stop *stop);

/** One more holder. */
static inline accelerator_stop *stop_hold(accelerator_stop *stop)
{
    atomic_fetch_add_explicit(&stop->holders, 1, memory_order_relaxed);
    return stop;
}
/** One less; NULL is allowed. The stop is the accelerator's again then. */
static inline void stop_drop(accelerator_stop **stop)
{
    accelerator_stop *s = *stop;
    *stop = NULL;
    if (s != NULL && atomic_fetch_sub_explicit(&s->holders, 1, memory_order_acq_rel) == 1)
        s->by->resume(s);
}

#endif
