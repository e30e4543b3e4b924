/* SPDX-License-Identifier: Apache-2.0
 *
 * heartbeat: sends signs of life to the neighbours in the tree, every peer_timeout / 5 but at least
 * once a second, and reports neighbours that are silent. The control thread of a live process
 * always sends them, however busy the process is; a stopped or disconnected one does not.
 */
#ifndef RING_CONTROL_HEARTBEAT_H
#define RING_CONTROL_HEARTBEAT_H

#include "membership_state.h"

bool heartbeat_compose(membership *m, connection *c, control_message *out);
/** Makes a heartbeat follow soon after another message over @p c, even while ranks join. If bytes
 *  of that message were lost on the way, the heartbeat fills it up to its size, and the receiver
 *  notices that it is damaged. */
void heartbeat_expedite(membership *m, connection *c);
/** Sends the heartbeats that are due, and reports neighbours that were silent for too long. */
void heartbeat_tick(membership *m, double now);
/** Excuses the silence of peers in the @p stall seconds in which this process did not run. */
void heartbeat_forgive(membership *m, double now, double stall);

#endif
