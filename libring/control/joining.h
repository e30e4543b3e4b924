/* SPDX-License-Identifier: Apache-2.0
 *
 * joining: lets a rank other than 0 join. The rank dials rank 0, proves that it belongs to the job,
 * sends its card, and waits for the cards of all ranks.
 */
#ifndef RING_CONTROL_JOINING_H
#define RING_CONTROL_JOINING_H

#include "id_exchange.h"
#include "membership_state.h"

/** Joins with the key and the addresses in @p c. If @p exchange is not NULL, @p c was made from its
 *  id, which may be left over from an earlier job; so the id is looked up again while rank 0 does
 * not answer. Must be called without the lock. */
ring_status joining_run(membership *m, credential *c, id_exchange *exchange);

/** Composes CONTROL_CARD or CONTROL_SEATED for rank 0. @return false if neither is due. */
bool joining_compose(membership *m, connection *c, control_message *out);
/** Logs a warning, once, if another program answers at rank 0's address. */
void joining_tick(membership *m);
/** Handles the end of the connection to rank 0. */
void joining_on_close(membership *m, const connection *c);

#endif
