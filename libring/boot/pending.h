/* SPDX-License-Identifier: Apache-2.0
 * pending: listeners of unique ids that were made here and not joined yet. */
#ifndef RING_BOOT_PENDING_H
#define RING_BOOT_PENDING_H

#include "base.h"

/** Remembers @p listener (owned) for @p id. */
ring_status pending_add(const ring_unique_id *id, int listener);
/** Hands the listener over; -1 if @p id was not made here, or was joined already. */
int pending_take(const ring_unique_id *id);
/** After a fork the child has a copy of the listener: closes it unless this process made it. */
void pending_forget_copy(const ring_unique_id *id);

#endif
