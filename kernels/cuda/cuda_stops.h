/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_stops: stops users' streams until the calls that the host drives for them are complete. A
 * stop is two words of pinned memory: the stream writes one when it reaches the stop, and waits for
 * the other. It needs neither a kernel nor a thread.
 */
#ifndef RING_CUDA_STOPS_H
#define RING_CUDA_STOPS_H

#include "cuda_memory.h"

/** Allocates the stops, and fills in base.owns_stream, stop, mark_default, resume and captures. The
 * caller has entered the device's context.
 *  @return RING_OK, RING_ERR_MEMORY, RING_ERR_SYSTEM. */
ring_status cuda_stops_open(cuda_device *c);
/** Frees the stops. No stream may be at a stop or ahead of one. */
void cuda_stops_close(cuda_device *c);
/** Finds out whether the default stream of the context that the thread has entered has work. While
 *  that stream is being captured it has no work of its own. */
ring_status cuda_default_is_busy(bool *busy);

#endif
