/* SPDX-License-Identifier: Apache-2.0
 * visiting: the other ranks while ranks join: find rank 0, prove, bring the card, wait for all. */
#ifndef RING_CONTROL_JOINING_H
#define RING_CONTROL_JOINING_H

#include "id_exchange.h"
#include "membership_state.h"

/** Joins by @p c. @p exchange, if not NULL, is where @p c was found: it may be out of date, so the
 *  exchange is asked again while rank 0 does not answer. Not locked. */
ring_status joining_run(membership *m, credential *c, id_exchange *exchange);

bool joining_compose(membership *m, connection *c, control_message *out);
/** Warns of a stranger at rank 0's address. */
void joining_tick(membership *m);
void joining_on_close(membership *m, const connection *c);

#endif
