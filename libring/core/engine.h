/* SPDX-License-Identifier: Apache-2.0
 * engine: runs works through their programs, and checks their deadlines. */
#ifndef RING_CORE_ENGINE_H
#define RING_CORE_ENGINE_H

#include "comm.h"

/** Starts a work and advances it as far as possible. The caller holds the lock. */
void engine_start(work *w);
/** Advances all works that can move, up to about @p most_bytes in all.
 *  @return true if anything moved. */
bool engine_turn(ring_comm *comm, size_t most_bytes);
/** Checks deadlines, at most once a millisecond. Fails the communicator if a work is overdue, or is
 *  stalled because another rank made a different call. */
void engine_look(ring_comm *comm, double now);
/** Ends all works if the communicator has failed. */
void engine_end_if_failed(ring_comm *comm);
/** Lets the streams continue that stay stopped at failed calls (RING_HOLD_STREAMS), and all that
 *  stop later. Ends the works if the communicator has failed. */
void engine_release_streams(ring_comm *comm);

#endif
