/* SPDX-License-Identifier: Apache-2.0
 *
 * region_ends: ends automatic regions, and notifies the watchers (region_watch()) of the end of any
 * region.
 */
#ifndef RING_REGION_ENDS_H
#define RING_REGION_ENDS_H

#include "region_table.h"

/** Ends an automatic region: immediately if no call uses it, or else with its last user. The caller
 *  holds the lock.
 *  @return true if it has ended; the caller must then call automatic_notify() after it has released
 *  the lock. */
bool automatic_end(region_slot *s);
/** Removes a user from a region. The caller holds the lock. @return as automatic_end(). */
bool automatic_release(region_slot *s);
/** @return the pinned bytes of the host's memory in the region. */
size_t automatic_bytes(const region_slot *s);

/** Notifies the watchers of the regions that have ended. The caller must not hold the lock. */
void automatic_notify(void);
/** Notifies the watchers of one end. The caller must not hold the lock. */
void regions_notify_watchers(uint16_t id, uint64_t offset, size_t bytes);
/** Resets the state in a forked child. */
void region_ends_forget(void);

#endif
