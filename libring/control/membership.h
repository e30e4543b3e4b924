/* SPDX-License-Identifier: Apache-2.0
 *
 * membership: creates and frees the state of one start, which membership_state.h describes. A
 * membership is created with this rank's card, and freed with its last communicator.
 */
#ifndef RING_CONTROL_MEMBERSHIP_H
#define RING_CONTROL_MEMBERSHIP_H

#include "launch.h"
#include "membership_state.h"

/** Creates a membership with this rank's card. The control thread does not serve it yet. Must be
 *  called without the lock. @return RING_OK, RING_ERR_MEMORY or RING_ERR_SYSTEM. */
ring_status membership_new(const settings *s, const launch_info *launch, uint32_t transports,
                           const control_dispatch *dispatch, membership **out);
/** Makes the control thread serve the membership. Must be called without the lock. */
ring_status membership_serve(membership *m);
/** Frees connections and dialers that have ended; called at the end of each event. */
void membership_free_ended(membership *m);
/** Frees a membership that the control thread does not serve. */
void membership_free(membership *m);

#endif
