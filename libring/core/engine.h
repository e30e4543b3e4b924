/* SPDX-License-Identifier: Apache-2.0
 * engine: runs works through their programs. */
#ifndef RING_CORE_ENGINE_H
#define RING_CORE_ENGINE_H

#include "comm.h"

/** Starts a work and advances it as far as it goes. The caller holds the lock. */
void engine_start(work *w);
/** One pass of progress over all works that can advance. @return true if anything moved. */
bool engine_turn(ring_comm *comm, size_t most_bytes);
/** Checks the clocks: fails the communicator if a work is past its deadline, or stalled by a rank
 *  in another call. */
void engine_look(ring_comm *comm, double now);
/** Ends all works if the communicator has failed. */
void engine_end_if_failed(ring_comm *comm);

#endif
