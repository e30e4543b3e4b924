/* SPDX-License-Identifier: Apache-2.0
 *
 * shrink: who goes on when a communicator has ended. Its ranks vote by calling control_shrink();
 * the lowest that is there, its caller with it or not, decides when all who are there have
 * voted, or at the voters' deadline. After a round that failed there is another.
 */
#ifndef RING_CONTROL_SHRINK_H
#define RING_CONTROL_SHRINK_H

#include "membership.h"

/** A vote or a decision about @p g. */
void shrink_hear(group *g, const control_message *note);
/** This rank leaves a communicator that may be shrunk without it. */
void shrink_resign(group *g);
/** Decides what is due and this rank's to decide. */
void shrink_tick(membership *m, double now);

#endif
