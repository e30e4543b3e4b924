/* SPDX-License-Identifier: Apache-2.0
 *
 * shrink: agrees on the ranks that continue after a communicator has ended. Its ranks vote by
 * calling control_shrink(). The lowest remaining rank, whether it has voted or not, decides when
 * all remaining ranks have voted, or at the earliest deadline of the voters. If a decision is an
 * error, the ranks can vote again in the next round.
 */
#ifndef RING_CONTROL_SHRINK_H
#define RING_CONTROL_SHRINK_H

#include "membership_state.h"

/** Handles a vote or a decision about @p g. */
void shrink_on_note(group *g, const control_message *note);
/** Announces that this rank leaves @p g, so that the other ranks do not wait for its vote. */
void shrink_resign(group *g);
/** Makes the decisions that are due, if this is the lowest remaining rank. */
void shrink_tick(membership *m, double now);

#endif
