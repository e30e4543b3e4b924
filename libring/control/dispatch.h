/* SPDX-License-Identifier: Apache-2.0
 *
 * dispatch: calls the parts of control when events arrive. There is a part for each concern:
 * gathering, joining, handout, barrier, verdict, bulletin, losses, departure, heartbeat, shrink and
 * roll. A part may
 * have four functions: receive (a message of its kinds has arrived), compose (the next message for
 * a connection, if there is one), on_close (a connection broke) and tick (a timer is due).
 */
#ifndef RING_CONTROL_DISPATCH_H
#define RING_CONTROL_DISPATCH_H

#include "membership_state.h"

extern const control_dispatch dispatch_table;

#endif
