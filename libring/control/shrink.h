/* SPDX-License-Identifier: Apache-2.0
 *
 * shrink: agrees on the ranks that continue after a communicator has ended. Its ranks vote by
 * calling control_shrink(). The lowest remaining rank, whether it votes or not, decides when all
 * remaining ranks have voted, or at the voters' deadline. A round that fails is followed by
 * another one.
 */
#ifndef RING_CONTROL_SHRINK_H
#define RING_CONTROL_SHRINK_H

#include "membership_state.h"

/** Handles a vote or a decision about @p g. */
void shrink_on_note(group *g, const control_message *note);
/** Announces that this rank leaves @p g, so that the others may shrink it without waiting. */
void shrink_resign(group *g);
/** Decides, if a decision is due and this is the rank that decides. */
void shrink_tick(membership *m, double now);

#endif
