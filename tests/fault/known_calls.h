/* SPDX-License-Identifier: Apache-2.0
 * A few collectives of known values, for tests in which something goes wrong. */
#ifndef TEST_FAULT_KNOWN_CALLS_H
#define TEST_FAULT_KNOWN_CALLS_H

#include <ring/ring.h>
#include <stdbool.h>

/** Sums of 2 to 50,000 numbers, broadcasts from each rank, a barrier; up to the first that fails.
 *  @param[out] wrong  set if a call that was right had wrong values. */
ring_status known_calls(ring_comm *comm, int rank, int ranks, bool *wrong);

#endif
