/* SPDX-License-Identifier: Apache-2.0
 *
 * membership: creates and frees the state of one start, which membership_state.h describes. Its
 * life begins with the card of this rank, and ends with its last connection.
 */
#ifndef RING_CONTROL_MEMBERSHIP_H
#define RING_CONTROL_MEMBERSHIP_H

#include "launch.h"
#include "membership_state.h"

/** Makes a membership with this rank's card, which the thread does not serve yet. Must be called
 *  without the lock. */
ring_status membership_new(const settings *s, const launch_info *launch, uint32_t transports,
                           const control_dispatch *dispatch, membership **out);
/** Makes the control thread serve it. Must be called without the lock. */
ring_status membership_serve(membership *m);
/** Frees connections and dialers that have ended; called at the end of each event. */
void membership_free_ended(membership *m);
void membership_free(membership *m);

#endif
