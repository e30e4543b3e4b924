/* SPDX-License-Identifier: Apache-2.0
 *
 * heartbeat: signs of life between neighbours of the tree, each peer_timeout / 5, at most 1 s. A
 * live process always beats, however busy it is; a stopped or cut-off one does not.
 */
#ifndef RING_CONTROL_HEARTBEAT_H
#define RING_CONTROL_HEARTBEAT_H

#include "membership_state.h"

bool heartbeat_compose(membership *m, connection *c, control_message *out);
/** Another message was sent over @p c: a beat soon follows, while ranks join too. If bytes were
 *  lost on the way, it completes the message that lacks them, and so shows it. */
void heartbeat_expedite(membership *m, connection *c);
/** Judges neighbours that were silent too long. */
void heartbeat_tick(membership *m, double now);
/** Time in which this process itself did not run does not count as silence of its peers. */
void heartbeat_forgive(membership *m, double now, double stall);

#endif
