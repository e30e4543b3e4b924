/* SPDX-License-Identifier: Apache-2.0
 *
 * dispatch: calls the parts of control when events arrive. Each part implements one concern:
 * gathering, joining, handout, barrier, verdict, bulletin, losses, departure, heartbeat, shrink and
 * roll. A part may have four functions: receive() handles a message of its kinds, compose() writes
 * the next message for a connection if there is one, on_close() handles the end of a connection,
 * and tick() handles timers that are due.
 */
#ifndef RING_CONTROL_DISPATCH_H
#define RING_CONTROL_DISPATCH_H

#include "membership_state.h"

/** The table for membership_new(). */
extern const control_dispatch dispatch_table;

#endif
