/* SPDX-License-Identifier: Apache-2.0
 * Keeps the users' regions that wait until the automatic regions that overlap them have ended. */
#include "region_waiting.h"

region_slot *region_waiting_at(uint32_t i)
{
    return &region_table.slots[region_table.waiting_at[i]];
}

region_slot *region_waiting_over(const char *base, size_t bytes)
{
    for (uint32_t i = 0; i < region_table.waiting; i++)
        if (table_overlaps(region_waiting_at(i), base, bytes))
            return region_waiting_at(i);
    return NULL;
}

bool regions_wait_for(const char *base, size_t bytes)
{
    return region_waiting_over(base, bytes) != NULL;
}

void region_list_or_wait(region_slot *s, bool waits)
{
    s->waits = waits;
    if (waits)
        region_table.waiting_at[region_table.waiting++] = (uint16_t)(s - region_table.slots);
    else
        table_list(s);
}

void region_unwait(uint32_t i)
{
    region_table.waiting_at[i] = region_table.waiting_at[--region_table.waiting];
}

void regions_list_waiting(void)
{
    for (uint32_t i = region_table.waiting; i-- > 0;) {
        region_slot *s = region_waiting_at(i);
        if (table_overlap(s->base, s->bytes) != NULL)
            continue;
        region_unwait(i);
        region_list_or_wait(s, false);
    }
}
