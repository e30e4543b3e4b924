/* SPDX-License-Identifier: Apache-2.0
 *
 * dispatch: events go up to the parts, one for each concern: gathering, visiting, handout, barrier,
 * verdict, bulletin, losses, departure, heartbeat, shrink, roll. Each may have four functions: hear
 * (a message of its kinds arrived), speak (compose the next message for a connection, if there is
 * one), lose (a connection broke) and tick (a timer is due).
 */
#ifndef RING_CONTROL_DISPATCH_H
#define RING_CONTROL_DISPATCH_H

#include "membership_state.h"

extern const control_dispatch dispatch_table;

#endif
