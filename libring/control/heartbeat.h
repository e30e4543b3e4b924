/* SPDX-License-Identifier: Apache-2.0
 *
 * heartbeat: sends heartbeats to the neighbours in the tree, and reports neighbours that are
 * silent. The interval is a fifth of RING_PEER_TIMEOUT, but at most a second. The control thread
 * sends the heartbeats even while the other threads of the process are busy, so a silent rank is
 * stopped or disconnected.
 */
#ifndef RING_CONTROL_HEARTBEAT_H
#define RING_CONTROL_HEARTBEAT_H

#include "membership_state.h"

/** Composes a heartbeat for @p c if one is due. @return false if not. */
bool heartbeat_compose(membership *m, connection *c, control_message *out);
/** Makes the next heartbeat follow soon after another message over @p c, even while ranks join. If
 *  bytes of the message were lost on the way, the receiver waits for the rest of it. The bytes of
 * the heartbeat then complete the message, and the receiver detects by the MAC that it is damaged.
 */
void heartbeat_expedite(membership *m, connection *c);
/** Sends the heartbeats that are due, and reports neighbours that were silent for too long. */
void heartbeat_tick(membership *m, double now);
/** Does not count the @p stall seconds in which this process did not run as a silence of peers. */
void heartbeat_forgive(membership *m, double now, double stall);

#endif
