/* SPDX-License-Identifier: Apache-2.0
 * known_calls: runs a few collectives with known values, for tests that inject faults. */
#ifndef TEST_FAULT_KNOWN_CALLS_H
#define TEST_FAULT_KNOWN_CALLS_H

#include <ring/ring.h>
#include <stdbool.h>

/** The result of one rank in a run. */
typedef struct known_outcome {
    ring_status status;
    bool wrong;  /* a value     */
    double over; /* harness_now() */
    char text[512];
} known_outcome;

/** Sums of 2 to 50,000 numbers, broadcasts from each rank, a barrier; up to the first that fails.
 *  @param[out] wrong  set if a call that was right had wrong values. */
ring_status known_calls(ring_comm *comm, int rank, int ranks, bool *wrong);
/** The same if *@p outcome is RING_OK so far, and notes how it ended. */
void known_calls_note(ring_comm *comm, int rank, int ranks, known_outcome *outcome);

/** @return true if it succeeded, or failed soon after @p failed (harness_now()) with a real reason
 *  and not just a deadline. */
bool known_outcome_is_told(const known_outcome *outcome, double failed);
void known_outcomes_print(const known_outcome *outcomes, int ranks, double failed);

#endif
