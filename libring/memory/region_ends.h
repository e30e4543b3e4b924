/* SPDX-License-Identifier: Apache-2.0
 *
 * region_ends: ends automatic regions, and notifies the watchers (region_watch()) when a region or
 * an allocation of the heap ends.
 */
#ifndef RING_REGION_ENDS_H
#define RING_REGION_ENDS_H

#include "region_table.h"

/** Ends an automatic region: at once if no call uses it, else when the last call releases it. The
 *  caller holds the table's lock.
 *  @return true if the region has ended; the caller must then call automatic_notify() after it has
 *  released the lock. */
bool automatic_end(region_slot *s);
/** Removes a call that uses the region, under the lock. Its result is that of automatic_end(). */
bool automatic_release(region_slot *s);
/** @return the pinned bytes of the host's memory in the region. */
size_t automatic_bytes(const region_slot *s);

/** Notifies the watchers of all automatic regions that have ended. The caller must not hold the
 *  lock. */
void automatic_notify(void);
/** Notifies the watchers that the memory [offset, offset+bytes) of the region @p id ends. The
 * caller must not hold the lock. */
void regions_notify_watchers(uint16_t id, uint64_t offset, size_t bytes);
/** Resets the state in a forked child. */
void region_ends_forget(void);

#endif
