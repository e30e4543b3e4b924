/* SPDX-License-Identifier: Apache-2.0
 *
 * gathering: collects the cards of all ranks at rank 0 while they join. It answers the handshake of
 * each rank, stores its card, notices ranks that are lost meanwhile, and fails the start for all
 * ranks at the earliest of their deadlines.
 */
#ifndef RING_CONTROL_GATHERING_H
#define RING_CONTROL_GATHERING_H

#include "membership_state.h"

/** Gathers the cards of all ranks, and sends them to the ranks below. Must be called without the
 *  lock.
 *  @param[in,out] listener  a socket bound to c->at[0]. It becomes -1 when the membership has taken
 *                           it over, which reports a failure to ranks that join later. */
ring_status gathering_run(membership *m, const credential *c, int *listener);

void gathering_receive(membership *m, connection *c, const control_message *message);
void gathering_on_close(membership *m, const connection *c);
void gathering_tick(membership *m, double now);

#endif
