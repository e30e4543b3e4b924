/* SPDX-License-Identifier: Apache-2.0
 *
 * region_waiting: what users registered over automatic regions that a call still uses. It is listed
 * when those have ended. The caller holds region_table.lock.
 */
#ifndef RING_REGION_WAITING_H
#define RING_REGION_WAITING_H

#include "region_table.h"

/** @return the region that waits in place @p i. */
region_slot *region_waiting_at(uint32_t i);
/** @return one that waits and has bytes of these; NULL: none. */
region_slot *region_waiting_over(const char *base, size_t bytes);
/** @return true if there is one. */
bool regions_wait_for(const char *base, size_t bytes);

void region_list_or_wait(region_slot *s, bool waits);
/** Takes the one in place @p i from among those that wait. */
void region_unwait(uint32_t i);
/** Lists those that wait for nothing any more. */
void regions_list_waiting(void);

#endif
