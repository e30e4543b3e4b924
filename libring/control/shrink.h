/* SPDX-License-Identifier: Apache-2.0
 *
 * shrink: agreement on the ranks that go on when a communicator has ended. Its ranks vote by
 * calling control_shrink(); the lowest rank that is there, voting or not, decides when all ranks
 * that are there have voted, or at the voters' deadline. After a round that failed there is
 * another.
 */
#ifndef RING_CONTROL_SHRINK_H
#define RING_CONTROL_SHRINK_H

#include "membership_state.h"

/** Takes a vote or a decision about @p g. */
void shrink_on_note(group *g, const control_message *note);
/** This rank leaves a communicator that may be shrunk without it. */
void shrink_resign(group *g);
/** Decides, if a decision is due and this rank's. */
void shrink_tick(membership *m, double now);

#endif
