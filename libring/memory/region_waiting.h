/* SPDX-License-Identifier: Apache-2.0
 *
 * region_waiting: keeps users' regions that wait, because they overlap automatic regions that calls
 * still use. A waiting region is added to the list when these have ended. The caller of any
 * function must hold region_table.lock.
 */
#ifndef RING_REGION_WAITING_H
#define RING_REGION_WAITING_H

#include "region_table.h"

/** @return the waiting region at place @p i. */
region_slot *region_waiting_at(uint32_t i);
/** @return a waiting region that overlaps the range; NULL if there is none. */
region_slot *region_waiting_over(const char *base, size_t bytes);
/** @return true if a waiting region overlaps the range. */
bool regions_wait_for(const char *base, size_t bytes);

/** Adds a user's region to the list, or to the waiting regions if @p waits is true. */
void region_list_or_wait(region_slot *s, bool waits);
/** Removes the region at place @p i from the waiting regions. */
void region_unwait(uint32_t i);
/** Adds to the list all waiting regions that no listed region overlaps any more. */
void regions_list_waiting(void);

#endif
