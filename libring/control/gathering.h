/* SPDX-License-Identifier: Apache-2.0
 *
 * gathering: collects the cards of all ranks at rank 0 while they join. It admits each rank after
 * its handshake and stores its card. The start fails for all ranks if a rank is lost meanwhile, or
 * when the earliest of their deadlines passes.
 */
#ifndef RING_CONTROL_GATHERING_H
#define RING_CONTROL_GATHERING_H

#include "membership_state.h"

/** Gathers the cards of all ranks, and sends them to rank 0's children in the tree. Must be called
 *  without the lock.
 *  @param[in,out] listener  a socket bound to c->at[0]. It becomes -1 when the membership owns the
 *                           socket, and reports a failure to ranks that connect later. */
ring_status gathering_run(membership *m, const credential *c, int *listener);

/** Closes the listener for joining ranks. The maker of the id redirects no more ranks. */
void gathering_close(membership *m);

/** Handles CONTROL_CARD and CONTROL_SEATED. */
void gathering_receive(membership *m, connection *c, const control_message *message);
/** Handles the end of the connection to a joining rank. */
void gathering_on_close(membership *m, const connection *c);
/** Fails the start if ranks are missing at the deadline. */
void gathering_tick(membership *m, double now);

#endif
