/* SPDX-License-Identifier: Apache-2.0
 *
 * gathering: rank 0 while ranks join. It answers each with a handshake, keeps its card, notices
 * ranks that are lost meanwhile, and ends the start for all at the earliest of their deadlines.
 */
#ifndef RING_CONTROL_GATHERING_H
#define RING_CONTROL_GATHERING_H

#include "membership_state.h"

/** Gathers at @p listener (bound), whose address is c->at[0], until the cards are on their way
 *  down. Not locked.
 *  @param[in,out] listener  -1: taken over; later ranks that come are notified of a failure.
 */
ring_status gathering_run(membership *m, const credential *c, int *listener);

void gathering_receive(membership *m, connection *c, const control_message *message);
void gathering_on_close(membership *m, const connection *c);
void gathering_tick(membership *m, double now);

#endif
