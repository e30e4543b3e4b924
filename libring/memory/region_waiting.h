/* SPDX-License-Identifier: Apache-2.0
 *
 * region_waiting: keeps users' regions that overlap automatic regions which a call still uses. They
 * are listed when those have ended. The caller must hold region_table.lock in all functions.
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

/** Lists a region, or lets it wait. */
void region_list_or_wait(region_slot *s, bool waits);
/** Removes the waiting region at place @p i. */
void region_unwait(uint32_t i);
/** Lists the waiting regions that no listed region overlaps any more. */
void regions_list_waiting(void);

#endif
