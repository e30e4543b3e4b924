/* SPDX-License-Identifier: Apache-2.0
 *
 * gathering: rank 0 while ranks join. It answers each with a handshake, keeps its card, notices
 * who is lost meanwhile, and ends for everybody at the earliest moment at which one of them
 * would give up.
 */
#ifndef RING_CONTROL_GATHERING_H
#define RING_CONTROL_GATHERING_H

#include "membership.h"

/** Gathers at @p listener (bound), whose address is c->at[0], until the cards are on their way
 *  down. Not locked.
 *  @param[in,out] listener  -1: it is not the caller's any more, and who comes is told of failures.
 */
ring_status gathering_run(membership *m, const credential *c, int *listener);

void gathering_hear(membership *m, connection *c, const control_message *message);
void gathering_lose(membership *m, const connection *c);
void gathering_tick(membership *m, double now);

#endif
