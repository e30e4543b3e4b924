/* SPDX-License-Identifier: Apache-2.0
 *
 * array: how arrays of plans and of their checks grow.
 */
#ifndef RING_PLAN_ARRAY_H
#define RING_PLAN_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/** realloc() of @p array for @p needed elements of @p size bytes, at least twice as many as
 *  before, so that growing one by one is cheap; nothing if there is room.
 *  @param[in,out] cap  elements that there is room for; 0 of NULL.
 *  @return the array; NULL without memory, then @p array and @p cap are as they were. */
static inline void *array_with_room(void *array, int32_t *cap, int64_t needed, size_t size)
{
    if (array != NULL && needed <= *cap)
        return array;
    const int64_t twice = *cap > 0 ? 2 * (int64_t)*cap : 8;
    const int64_t wanted = needed > twice ? needed : twice;
    void *grown = wanted <= INT32_MAX ? realloc(array, (size_t)wanted * size) : NULL;
    if (grown != NULL)
        *cap = (int32_t)wanted;
    return grown;
}

#endif
