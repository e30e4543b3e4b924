/* SPDX-License-Identifier: Apache-2.0
 *
 * roll: which of some ranks have come to a call that they make together, by a deadline. Each that
 * comes tells all (CONTROL_PRESENT); the lowest rank of the membership that is there closes the
 * round, once all have come or at the earliest deadline of those that did, and tells all who had
 * come (CONTROL_ROLL). So all that were in a round have one answer. A rank that came too late for a
 * round is in the next one. It closes rounds of communicators that it is not in, too: a roll says
 * how many it wants, and ranks are those of the membership.
 */
#ifndef RING_CONTROL_ROLL_H
#define RING_CONTROL_ROLL_H

#include "membership.h"

/** One that came, or the end of a round. */
void roll_hear(membership *m, const control_message *note);
/** Closes what is due and this rank's to close. */
void roll_tick(membership *m, double now);
/** This rank has left the communicator. */
void roll_forget(membership *m, uint64_t communicator);
/** Frees all. */
void roll_free(membership *m);

#endif
