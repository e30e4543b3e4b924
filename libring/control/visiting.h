/* SPDX-License-Identifier: Apache-2.0
 * visiting: the other ranks while ranks join: find rank 0, prove, bring the card, wait for all. */
#ifndef RING_CONTROL_VISITING_H
#define RING_CONTROL_VISITING_H

#include "id_exchange.h"
#include "membership_state.h"

/** Joins by @p c. @p exchange, if not NULL, is where @p c was found: it may be out of date, so the
 *  exchange is asked again while rank 0 does not answer. Not locked. */
ring_status visiting_run(membership *m, credential *c, id_exchange *exchange);

bool visiting_speak(membership *m, connection *c, control_message *out);
/** Warns of a stranger at rank 0's address. */
void visiting_tick(membership *m);
void visiting_lose(membership *m, const connection *c);

#endif
