/* SPDX-License-Identifier: Apache-2.0
 *
 * region_ends: how automatic regions end, and who is told of a region's end.
 */
#ifndef RING_REGION_ENDS_H
#define RING_REGION_ENDS_H

#include "region_table.h"

/** Ends an automatic region, with the lock held: at once if nobody uses it, else with its last
 * user.
 *  @return true: at once; automatic_notify() is due once the lock is given up. */
bool automatic_end(region_slot *s);
/** One user less. @return as automatic_end(). */
bool automatic_release(region_slot *s);
/** @return bytes of the host's memory that it takes, pinned. */
size_t automatic_bytes(const region_slot *s);

/** Without the lock: tells of those that ended. */
void automatic_notify(void);
/** Without the lock. */
void regions_notify_watchers(uint16_t id, uint64_t offset, size_t bytes);
/** For a child. */
void region_ends_forget(void);

#endif
