/* SPDX-License-Identifier: Apache-2.0
 * membership: its life, from the card of this rank to the end of its connections. */
#ifndef RING_CONTROL_MEMBERSHIP_H
#define RING_CONTROL_MEMBERSHIP_H

#include "launch.h"
#include "membership_state.h"

/** Makes a membership with this rank's card; the thread does not serve it yet. Not locked. */
ring_status membership_new(const settings *s, const launch_info *launch, uint32_t transports,
                           const control_dispatch *dispatch, membership **out);
/** Has the thread serve it. Not locked. */
ring_status membership_serve(membership *m);
/** Frees connections and dialers that have ended; at the end of each event. */
void membership_free_ended(membership *m);
void membership_free(membership *m);

#endif
