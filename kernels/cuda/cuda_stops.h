/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_stops: places in users' streams where these wait for calls driven by the host. A stop is two
 * words of pinned memory: the stream writes one when it reaches the stop, and waits for the other.
 * It needs no kernel, and no thread.
 */
#ifndef RING_CUDA_STOPS_H
#define RING_CUDA_STOPS_H

#include "cuda_memory.h"

/** Fills in base.owns_stream, stop, resume, captures and capture. In the device's context.
 *  @return RING_OK, RING_ERR_MEMORY, RING_ERR_SYSTEM. */
ring_status cuda_stops_open(cuda_device *c);
/** The same for the end. No stream is at a stop, nor will reach one. */
void cuda_stops_close(cuda_device *c);

#endif
