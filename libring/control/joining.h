/* SPDX-License-Identifier: Apache-2.0
 *
 * joining: lets a rank other than 0 join. The rank finds rank 0, proves its membership, sends its
 * card, and waits until the cards of all ranks arrive.
 */
#ifndef RING_CONTROL_JOINING_H
#define RING_CONTROL_JOINING_H

#include "id_exchange.h"
#include "membership_state.h"

/** Joins with the key and the addresses in @p c. If @p exchange is not NULL, @p c came from there
 *  and may be out of date, so it is looked up again while rank 0 does not answer. Must be called
 *  without the lock. */
ring_status joining_run(membership *m, credential *c, id_exchange *exchange);

bool joining_compose(membership *m, connection *c, control_message *out);
/** Logs a warning once if a stranger answers at rank 0's address. */
void joining_tick(membership *m);
void joining_on_close(membership *m, const connection *c);

#endif
